# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""How people set goals, rules, tasks and decisions in English, and how they change them; two halves, as in `aims`.

``⟦…⟧`` marks what must be shown for the thing to be known as it now stands. Goals and rules are ``key | first || changed
|| over``; a task is what to do, with what, and its participle; a decision is about something, with options.
"""

from __future__ import annotations

from ..suites.goals import GoalPhrasings, LifeField, TaskPhrasing

DEV = GoalPhrasings(
    fields={
        "help desk": LifeField(
            goals=(
                "laptops | have ⟦every laptop on the new image by {date}⟧ || have ⟦every laptop on the new image by {date2}⟧ || ⟦every laptop is on the new image⟧",
                "queue | bring ⟦the ticket queue under {n2} open cases⟧ || bring ⟦the ticket queue under {m2} open cases⟧ || ⟦the ticket queue is where we wanted it⟧",
                "phones | let ⟦people in the branch offices call out by {date}⟧ || let ⟦people in the branch offices call out by {date2}⟧ || ⟦the branch offices can call out⟧",
            ),
            rules=(
                "remote sessions | Never open ⟦a remote session without the user at the desk⟧. || A remote session is fine ⟦if the user has agreed by phone⟧ from now on. || ⟦The rule about remote sessions is gone⟧.",
                "spare parts | Spare parts may cost ⟦{money} a month⟧ at most. || The limit for spare parts is now ⟦{money2} a month⟧. || ⟦There is no limit on spare parts any more⟧.",
                "password resets | Password resets need ⟦{person}'s sign-off⟧. || Password resets need ⟦{person2}'s sign-off⟧ instead of {person}'s. || ⟦Password resets need no sign-off any more⟧.",
                "maintenance | Maintenance only ⟦after {n1} pm⟧. || Maintenance is allowed ⟦from {n1}:30 am⟧ now, not in the evening. || ⟦Maintenance may happen at any hour now⟧.",
            ),
            tasks=(
                TaskPhrasing("reset", "the intern's badge", "reset"), TaskPhrasing("order", "a spare charger for room four", "ordered"),
                TaskPhrasing("call", "the leasing company", "called"), TaskPhrasing("update", "the label printer's firmware", "updated"),
                TaskPhrasing("close", "the warehouse ticket", "closed"), TaskPhrasing("archive", "the shared calendar", "archived"),
                TaskPhrasing("replace", "the cracked monitor in reception", "replaced"), TaskPhrasing("label", "the network cabinet", "labelled"),
            ),
            choices=(
                ("the ticket system", ("Zammad", "Freshdesk", "Jitbit", "Znuny")), ("remote support", ("RustDesk", "AnyDesk", "Splashtop")),
                ("the asset list", ("Snipe-IT", "GLPI", "Ralph")), ("headsets", ("Jabra", "Poly", "Sennheiser")),
            ),
        ),
        "coding": LifeField(
            goals=(
                "checkout page | get ⟦the checkout page live by {date}⟧ || get ⟦the checkout page live by {date2}⟧ || ⟦the checkout page is live⟧",
                "build time | bring ⟦the build under {n2} seconds⟧ || bring ⟦the build under {m2} seconds⟧ || ⟦the build is fast enough⟧",
                "old API | switch ⟦the old API off on {date}⟧ || switch ⟦the old API off on {date2}⟧ || ⟦the old API is switched off⟧",
            ),
            rules=(
                "main branch | Nobody pushes to ⟦main without a green pipeline⟧. || Pushing to main needs ⟦two green pipelines⟧ now, one is not enough. || ⟦Anybody may push to main again⟧.",
                "bundle | The bundle has to stay below ⟦{n3} KB⟧. || The bundle limit went up to ⟦{m3} KB⟧. || ⟦The bundle may be as large as it needs to be⟧.",
                "dependencies | Don't add ⟦a dependency without asking {person}⟧. || For new dependencies ask ⟦{person2}⟧ instead of {person}. || ⟦New dependencies need no question any more⟧.",
                "customer table | Leave ⟦the customer table alone⟧, whatever the script says. || The customer table may be read, ⟦but never written to⟧. || ⟦The customer table is open for work again⟧.",
            ),
            tasks=(
                TaskPhrasing("merge", "the pagination branch", "merged"), TaskPhrasing("rename", "the invoicing module", "renamed"),
                TaskPhrasing("draft", "the migration note", "drafted"), TaskPhrasing("remove", "the legacy login form", "removed"),
                TaskPhrasing("profile", "the image endpoint", "profiled"), TaskPhrasing("tag", "the release candidate", "tagged"),
                TaskPhrasing("translate", "the error page", "translated"), TaskPhrasing("rotate", "the signing certificate", "rotated"),
            ),
            choices=(
                ("the message broker", ("RabbitMQ", "Pulsar", "Redpanda")), ("the component library", ("Radix", "Chakra", "Mantine", "Carbon")),
                ("error tracking", ("Sentry", "Rollbar", "Bugsnag")), ("the date library", ("Luxon", "Dayjs", "Temporal")),
            ),
        ),
        "travel": LifeField(
            goals=(
                "islands | spend ⟦{n1} days on the islands⟧ || spend ⟦{n2} days on the islands⟧ || ⟦the days on the islands are planned⟧",
                "home | be ⟦back home by {date}⟧ || be ⟦back home by {date2}⟧ || ⟦the way home is sorted out⟧",
                "grandmother | show ⟦grandmother her village before {date}⟧ || show ⟦grandmother her village before {date2}⟧ || ⟦grandmother has seen her village⟧",
            ),
            rules=(
                "budget | The whole trip may cost ⟦{money}⟧ at most. || We can go up to ⟦{money2}⟧ for the whole trip. || ⟦Money is no issue for the trip any more⟧.",
                "flights | No ⟦flights with a stopover⟧, please. || One stopover is okay ⟦if it is under {n1} hours⟧. || ⟦Stopovers are fine after all⟧.",
                "allergy | {person} is ⟦allergic to shellfish⟧, keep that in mind for every restaurant. || The doctor says {person} ⟦may eat shrimp but no mussels⟧. || ⟦{person} can eat shellfish again⟧.",
                "walking | We can't walk more than ⟦{n1} km a day⟧. || With the new shoes ⟦{n2} km a day⟧ are possible. || ⟦Walking distance does not matter any more⟧.",
            ),
            tasks=(
                TaskPhrasing("book", "the hostel in Porto", "booked"), TaskPhrasing("renew", "my brother's passport", "renewed"),
                TaskPhrasing("reserve", "a table at the harbour", "reserved"), TaskPhrasing("print", "the rail pass", "printed"),
                TaskPhrasing("pack", "the first-aid kit", "packed"), TaskPhrasing("confirm", "the airport pickup", "confirmed"),
                TaskPhrasing("rent", "a camper van", "rented"), TaskPhrasing("insure", "the camera", "insured"),
            ),
            choices=(
                ("the guidebook", ("Baedeker", "Fodor's", "Rough Guide")), ("car hire", ("Sixt", "Europcar", "Hertz")),
                ("the travel card", ("Revolut", "Wise", "Monzo")), ("the first stop", ("Lagos", "Coimbra", "Braga", "Évora")),
            ),
        ),
        "kitchen": LifeField(
            goals=(
                "kitchen | have ⟦a usable kitchen by {date}⟧ || have ⟦a usable kitchen by {date2}⟧ || ⟦the kitchen is usable⟧",
                "seats | seat ⟦{n1} people at one table⟧ || seat ⟦{n2} people at one table⟧ || ⟦everybody fits at the table⟧",
                "power | halve ⟦the power bill within {n1} months⟧ || halve ⟦the power bill within {n2} months⟧ || ⟦the power bill is halved⟧",
            ),
            rules=(
                "total | The whole renovation must stay under ⟦{money}⟧. || Okay, the renovation can cost up to ⟦{money2}⟧. || ⟦We stopped counting what the renovation costs⟧.",
                "noise | No drilling ⟦before {n1} in the morning⟧. || The neighbours ask for ⟦no drilling after {n1} in the evening⟧ instead of the mornings. || ⟦Drilling is allowed at any time now⟧.",
                "wall | The wall to the hallway ⟦must not be touched⟧, it carries the roof. || The engineer allows ⟦one opening of {n2} cm⟧ in the wall to the hallway. || ⟦The wall to the hallway may come down⟧.",
                "gas | Only ⟦{person} works on the gas line⟧. || From now on ⟦{person2} works on the gas line⟧, {person} moved away. || ⟦The gas line is out of use, anyone may work there⟧.",
            ),
            tasks=(
                TaskPhrasing("measure", "the window niche", "measured"), TaskPhrasing("order", "the oak worktop", "ordered"),
                TaskPhrasing("paint", "the pantry door", "painted"), TaskPhrasing("return", "the wrong faucet", "returned"),
                TaskPhrasing("hire", "the tiler", "hired"), TaskPhrasing("clear", "the basement shelf", "cleared"),
                TaskPhrasing("insulate", "the north wall", "insulated"), TaskPhrasing("sell", "the old stove", "sold"),
            ),
            choices=(
                ("the countertop", ("granite", "terrazzo", "linoleum")), ("the hob", ("Bora", "Neff", "Gaggenau", "Miele")),
                ("the floor", ("cork", "slate", "parquet")), ("the wall colour", ("sage", "ochre", "cobalt")),
            ),
        ),
    },
    goal=("The goal is to {it}.", "What I'm after is this: {it}.", "In the end we want to {it}.", "My aim for the coming weeks is to {it}.", "Above all I'd like to {it}."),
    sub_goal=("As a step towards that, {it}.", "Part of it is to {it}.", "Before we get there we have to {it}.", "A smaller goal inside it: {it}."),
    goal_changed=("Change of plan: {it}.", "The goal moved, we now want to {it}.", "Let me correct the goal: {it}.", "New aim: {it}, not what I said before."),
    goal_over=("Great news, {it}.", "We made it: {it}.", "One goal down, {it}.", "You can stop worrying about that goal, {it}."),
    task=("We still have to ⟦{do} {key}⟧.", "Please remind me to ⟦{do} {key}⟧.", "On my list: ⟦{do} {key}⟧.", "Don't forget to ⟦{do} {key}⟧.", "Todo: ⟦{do} {key}⟧.", "Could you put down that I need to ⟦{do} {key}⟧?"),
    task_done=("⟦{key} is {part}⟧, so tick that off.", "I've ⟦{part} {key}⟧ this morning.", "Done: ⟦{key} is {part}⟧.", "Just ⟦{part} {key}⟧.", "⟦{key} has been {part}⟧, one less on the list.", "That's off my plate, I finally ⟦{part} {key}⟧."),
    task_dropped=("Forget about ⟦{key}, we no longer need it⟧.", "⟦No need to {do} {key}⟧ after all.", "Scratch that one, we ⟦won't {do} {key}⟧."),
    task_again=("Bad news, ⟦{key} has to be {part} again⟧.", "⟦{key} is not {part} after all⟧, back on the list with it.", "It went wrong, we need to ⟦{do} {key} once more⟧."),
    rule_lead=("", "", "", "One rule: ", "Please keep in mind: ", "Important: ", "Before I forget, "),
    choice=("For {key} we go with ⟦{it}⟧.", "We decided on ⟦{it}⟧ for {key}.", "Let's use ⟦{it}⟧ for {key}.", "{key}: it's going to be ⟦{it}⟧, that's settled.", "I picked ⟦{it}⟧ for {key}."),
    choice_changed=("We changed our minds about {key}: ⟦{it}⟧ instead of {old}.", "Scratch {old}, {key} will be ⟦{it}⟧.", "For {key} we switch from {old} to ⟦{it}⟧.", "On second thought, not {old} but ⟦{it}⟧ for {key}."),
    about_all=("Where do we stand? Goals, rules, decisions and what is still open, please.", "Give me a full status: what are we trying to reach, under which rules, what is decided, what is left to do?", "Please hand this over to a colleague: aims, constraints, decisions, open tasks."),
    about_goals=("What are we trying to achieve?", "What were our goals again?", "Remind me of the aims."),
    about_tasks=("What is still on my todo list?", "Which tasks are open and which are done?", "What do I still have to do?"),
    about_rules=("Which rules and limits apply?", "What constraints do we have to respect?", "What must you never do here?"),
    about_choices=("What have we decided so far?", "Which choices are settled?", "List the decisions we made."),
    about_one=("What is the latest on {key}?", "How do things stand with {key}?", "Remind me about {key}."),
    acks=("Noted.", "Understood.", "Okay, I have that.", "Thanks for telling me.", "Alright, I'll work with that."),
    echoes=("Noted: {it}", "Okay, so: {it}", "I have written down: {it}"),
    agent_done=("Finished: ⟦{key} is {part}⟧.", "I have ⟦{part} {key}⟧ for you."),
    list_lead=("A few things at once:", "Several points:", "Let me list it:"),
)  # fmt: skip

HELD_OUT = GoalPhrasings(
    fields={
        "data work": LifeField(
            goals=(
                "forecast | ship ⟦a sales forecast to the board by {date}⟧ || ship ⟦a sales forecast to the board by {date2}⟧ || ⟦the board has its forecast⟧",
                "error rate | push ⟦the matching errors below {n1} percent⟧ || push ⟦the matching errors below {n2} percent⟧ || ⟦matching errors are no longer a topic⟧",
                "warehouse | move ⟦all reports to the warehouse by {date}⟧ || move ⟦all reports to the warehouse by {date2}⟧ || ⟦all reports live in the warehouse⟧",
            ),
            rules=(
                "salaries | Salary columns ⟦stay out of every extract⟧. || Salary columns may appear ⟦rounded to thousands⟧ from today. || ⟦Salary columns are unrestricted now⟧.",
                "query cost | A single query is capped at ⟦{money}⟧. || The cap on a single query was raised to ⟦{money2}⟧. || ⟦Queries are not capped any longer⟧.",
                "raw files | Raw files are ⟦read-only for everyone but {person}⟧. || Raw files are ⟦read-only for everyone but {person2}⟧ as of now. || ⟦Anyone may edit the raw files⟧.",
                "refresh | Refreshes have to finish ⟦before {n1} am⟧. || It is enough if refreshes finish ⟦before {n2} past noon⟧. || ⟦Refreshes can finish whenever they like⟧.",
            ),
            tasks=(
                TaskPhrasing("deduplicate", "the customer list", "deduplicated"), TaskPhrasing("backfill", "the March partition", "backfilled"),
                TaskPhrasing("document", "the churn metric", "documented"), TaskPhrasing("encrypt", "the vendor dump", "encrypted"),
                TaskPhrasing("recount", "the inventory sheet", "recounted"), TaskPhrasing("schedule", "the nightly export", "scheduled"),
                TaskPhrasing("review", "the cohort query", "reviewed"), TaskPhrasing("anonymise", "the interview notes", "anonymised"),
            ),
            choices=(
                ("the dashboard tool", ("Metabase", "Superset", "Looker")), ("the file format", ("Parquet", "Avro", "Arrow")),
                ("orchestration", ("Dagster", "Airflow", "Kestra", "Mage")), ("the sample", ("stratified", "clustered", "systematic")),
            ),
        ),
        "tutoring": LifeField(
            goals=(
                "exam | pass ⟦the chemistry exam with {n2} points⟧ || pass ⟦the chemistry exam with {m2} points⟧ || ⟦the chemistry exam is passed⟧",
                "novel | finish ⟦the Spanish novel before {date}⟧ || finish ⟦the Spanish novel before {date2}⟧ || ⟦the Spanish novel is read to the end⟧",
                "speech | hold ⟦a speech of {n1} minutes without notes⟧ || hold ⟦a speech of {n2} minutes without notes⟧ || ⟦the speech went well⟧",
            ),
            rules=(
                "answers | You don't give me ⟦the solution before I've tried twice⟧. || ⟦One attempt of mine⟧ is enough before you show a solution. || ⟦Solutions may come right away from now on⟧.",
                "sessions | A session lasts ⟦{n2} minutes⟧, not one more. || Sessions are extended to ⟦{m2} minutes⟧. || ⟦Sessions can run as long as they like⟧.",
                "language | All explanations ⟦in simple English only⟧. || Explanations may contain ⟦technical terms with a gloss⟧ now. || ⟦Write explanations any way you want⟧.",
                "calculator | ⟦No calculator on Mondays⟧, my teacher insists. || The calculator ban ⟦moved to Thursdays⟧. || ⟦The calculator is allowed every day⟧.",
            ),
            tasks=(
                TaskPhrasing("summarise", "the enzyme chapter", "summarised"), TaskPhrasing("memorise", "the irregular verbs sheet", "memorised"),
                TaskPhrasing("solve", "the projectile exercise", "solved"), TaskPhrasing("hand in", "the lab protocol", "handed in"),
                TaskPhrasing("proofread", "the personal statement", "proofread"), TaskPhrasing("watch", "the lecture on tides", "watched"),
                TaskPhrasing("correct", "the mock test", "corrected"), TaskPhrasing("borrow", "the blue atlas", "borrowed"),
            ),
            choices=(
                ("the essay topic", ("migration", "typography", "glaciers")), ("flashcards", ("Anki", "Quizlet", "Mnemosyne")),
                ("the elective", ("astronomy", "Latin", "robotics", "drama")), ("the study place", ("library", "conservatory", "attic")),
            ),
        ),
        "project planning": LifeField(
            goals=(
                "pilot | run ⟦the pilot in {n1} cities⟧ || run ⟦the pilot in {n2} cities⟧ || ⟦the pilot has run everywhere⟧",
                "contract | get ⟦the framework contract signed by {date}⟧ || get ⟦the framework contract signed by {date2}⟧ || ⟦the framework contract is signed⟧",
                "team | grow ⟦the team to {n2} people⟧ || grow ⟦the team to {m2} people⟧ || ⟦the team is complete⟧",
            ),
            rules=(
                "press | Not a word ⟦to the press before the launch⟧. || The press may be told ⟦the date, nothing else⟧. || ⟦Talking to the press is fine now⟧.",
                "overtime | Overtime is limited to ⟦{n1} hours a week⟧. || The works council agreed to ⟦{n2} hours⟧ of overtime a week. || ⟦Overtime has no limit any longer⟧.",
                "invoices | Every invoice goes ⟦through {person} first⟧. || Invoices now go ⟦through {person2} first⟧. || ⟦Invoices can be paid straight away⟧.",
                "budget line | We mustn't exceed ⟦{money}⟧ on travel. || The travel ceiling is ⟦{money2}⟧ as of this week. || ⟦The travel ceiling was abolished⟧.",
            ),
            tasks=(
                TaskPhrasing("invite", "the ombudsman", "invited"), TaskPhrasing("finalise", "the seating plan", "finalised"),
                TaskPhrasing("translate", "the consent form", "translated"), TaskPhrasing("publish", "the tender notice", "published"),
                TaskPhrasing("audit", "the supplier file", "audited"), TaskPhrasing("brief", "the night crew", "briefed"),
                TaskPhrasing("stamp", "the customs papers", "stamped"), TaskPhrasing("rehearse", "the opening demo", "rehearsed"),
            ),
            choices=(
                ("the venue", ("Tramsheds", "Kulturhof", "Pavillon")), ("the caterer", ("Saffron", "Juniper", "Olive Grove")),
                ("the logo", ("heron", "compass", "acorn", "lantern")), ("the printing house", ("Offizin", "Druckwerk", "Heidel")),
            ),
        ),
        "garden": LifeField(
            goals=(
                "pond | dig ⟦a pond of {n1} metres by {date}⟧ || dig ⟦a pond of {n1} metres by {date2}⟧ || ⟦the pond is there⟧",
                "harvest | harvest ⟦{n2} kilos of tomatoes⟧ || harvest ⟦{m2} kilos of tomatoes⟧ || ⟦the tomato harvest is in⟧",
                "fence | close ⟦the fence before {date}⟧ || close ⟦the fence before {date2}⟧ || ⟦the fence is closed all round⟧",
            ),
            rules=(
                "spray | ⟦No chemicals near the beehives⟧, ever. || Soap water is tolerated ⟦{n1} metres away from the beehives⟧. || ⟦Spraying by the beehives is permitted now⟧.",
                "water | We may take ⟦{n3} litres a day⟧ from the well. || The well gives ⟦{m3} litres a day⟧ since the repair. || ⟦The well has no daily limit any longer⟧.",
                "dog | The gate ⟦has to be shut while {person}'s dog is out⟧. || ⟦The gate may stay ajar⟧ while {person}'s dog is out, he learned to wait. || ⟦The gate can stay open, the dog moved⟧.",
                "trees | Nobody fells ⟦a tree without the permit⟧. || Felling is fine up to ⟦{n2} cm of trunk⟧ without the permit. || ⟦Felling needs no permit any longer⟧.",
            ),
            tasks=(
                TaskPhrasing("prune", "the cherry tree", "pruned"), TaskPhrasing("sharpen", "the hedge shears", "sharpened"),
                TaskPhrasing("sow", "the winter salad", "sown"), TaskPhrasing("repair", "the greenhouse hinge", "repaired"),
                TaskPhrasing("divide", "the rhubarb", "divided"), TaskPhrasing("lime", "the front lawn", "limed"),
                TaskPhrasing("empty", "the rain barrel", "emptied"), TaskPhrasing("stake", "the dahlia", "staked"),
            ),
            choices=(
                ("the hedge", ("hornbeam", "privet", "yew")), ("the path", ("gravel", "bark", "brick", "sandstone")),
                ("the mower", ("Husqvarna", "Stihl", "Gardena")), ("the apple variety", ("Boskoop", "Topaz", "Elstar")),
            ),
        ),
    },
    goal=("Our target: {it}.", "I've set myself to {it}.", "The whole point is to {it}.", "If all goes well we will {it}, that's what this is about.", "We're here to {it}."),
    sub_goal=("To get there we first {it}.", "One milestone on the way: {it}.", "It starts smaller, we {it}.", "Within that, the next thing is to {it}."),
    goal_changed=("The target changed, it is to {it} now.", "Not quite what I told you: {it}.", "We had to adjust and will {it} instead.", "Please update the target: {it}."),
    goal_over=("Hooray, {it}.", "That target is behind us: {it}.", "Mission accomplished, {it}.", "Tick the big one: {it}."),
    task=("Somebody needs to ⟦{do} {key}⟧.", "Next up: ⟦{do} {key}⟧.", "I mustn't forget to ⟦{do} {key}⟧.", "Can you note that we have to ⟦{do} {key}⟧?", "⟦{do} {key}⟧ is still outstanding.", "What remains is to ⟦{do} {key}⟧."),
    task_done=("⟦{key} is {part}⟧ now.", "We got ⟦{key} {part}⟧ over the weekend.", "I managed to get ⟦{key} {part}⟧.", "⟦{key}: {part}⟧, finally.", "Good, ⟦{key} was {part}⟧ yesterday.", "By the way, I already ⟦{part} {key}⟧."),
    task_dropped=("We ⟦don't have to {do} {key}⟧ any more.", "⟦{key} can be left as it is⟧, cross it out.", "Never mind, ⟦we skip {key}⟧."),
    task_again=("Unfortunately ⟦{key} needs to be {part} a second time⟧.", "I was too quick, ⟦{key} isn't {part} yet⟧.", "⟦{key} is open again⟧, sorry."),
    rule_lead=("", "", "", "A condition: ", "Mind you, ", "Something to respect: ", "The rules here: "),
    choice=("⟦{it}⟧ it is, for {key}.", "{key} will be ⟦{it}⟧, everyone agreed.", "The decision on {key} fell: ⟦{it}⟧.", "We settled {key}, it's ⟦{it}⟧.", "I've made up my mind on {key}: ⟦{it}⟧."),
    choice_changed=("{key} is ⟦{it}⟧ now, {old} fell through.", "We replaced {old} by ⟦{it}⟧ for {key}.", "Sorry, {key} becomes ⟦{it}⟧ rather than {old}.", "{old} is off the table, {key} goes to ⟦{it}⟧."),
    about_all=("Summarise everything that counts: targets, conditions, choices, outstanding work.", "I was away for a day. What is the state of play, with all that is agreed and open?", "Write the handover: what we want, what we must respect, what was chosen, what remains."),
    about_goals=("What is it all for, once more?", "Which targets have we set?", "Where do we want to end up?"),
    about_tasks=("What remains to be done?", "Go through the list of tasks with me.", "Which pieces of work are outstanding?"),
    about_rules=("What conditions did I give you?", "Which limits hold right now?", "What are we not allowed to do?"),
    about_choices=("What did we settle on?", "Run through the choices made.", "Which decisions stand?"),
    about_one=("And {key}?", "What did we say about {key}?", "Bring me up to date on {key}."),
    acks=("Fine, got it.", "That's clear.", "I'll remember.", "Good, thank you.", "All right, that is in."),
    echoes=("So that I have it right: {it}", "Written down: {it}", "Fine: {it}"),
    agent_done=("It's done, ⟦{key} is {part}⟧.", "All set: ⟦{key} is {part}⟧."),
    list_lead=("Three things, maybe fewer:", "In no order:", "My notes:"),
)  # fmt: skip
