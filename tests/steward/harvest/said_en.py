"""What people say, in English, with what it is: written for these tests.

`durable`: a standing wish that needs no company. `weak`: a liking or wish that needs company or is of this task alone.
`none`: a question, a quotation, a supposition, irony, small talk: nothing to keep as a wish. Of the first sets, every
other line was held out while the cues were tuned. `LATER` and `LAST` were written after that, with wordings of another
turn: at first sight they gave strict recall of .67 and .50 with no false one, and then served for tuning too.
"""

from __future__ import annotations

DURABLE = """
Please always answer me in British English.
From now on, put the summary at the top of every report.
I prefer aisle seats on long flights.
Call me Ann, nobody says Annabel.
Never use emojis when you write to me.
I'm allergic to peanuts, so keep that in mind for every recipe.
Keep your answers short unless I ask for more.
My favourite editor is Helix.
I always fly out of Gatwick, Heathrow is too far.
Stop apologizing in every message.
In future, please send me the invoice as a PDF.
I'm vegetarian, no fish either.
Whenever you show me code, add type hints.
I prefer tabs over spaces.
You can call me Raj.
Please remember that I don't drink alcohol.
Don't ever share my phone number with a driver.
By default use metric units with me.
I'd rather you didn't explain the basics.
My preferred airline is KLM.
Reply in French, please, my English is weak.
I only eat halal meat.
I generally prefer morning appointments.
No bullet points, please.
Going forward, cc my assistant on every booking.
I can't stand it when you repeat my question back to me.
My pronouns are they and them.
I like my coffee black.
Always ask before you delete anything.
For future reference, I'm in the Pacific time zone.
I don't eat pork.
My name is Priya, by the way.
I hate it when answers start with a compliment.
Please never book a connection under one hour.
When you review my code, be blunt.
I usually prefer hotels with a gym.
Use Celsius, not Fahrenheit, whenever you mention temperatures.
I strongly prefer email to phone calls.
As a rule I don't take red-eye flights.
Don't use semicolons in anything you write for me.
I want you to always cite your sources.
I'm lactose intolerant.
I never check a bag.
Every time you finish a task, tell me how long it took.
Address me as Dr. Osei.
I go by Sam.
Just so you know, I have a nut allergy.
My favorite color is teal.
I only wear cotton, wool makes me itch.
Keep in mind that I am colour-blind when you pick chart colours.
Make sure you always round to two decimals.
I like it when you give me the command first and the reasons after.
Stop using the word delve.
Please don't call me Mrs. Lee, I'm Ms. Lee.
I definitely prefer Postgres to MySQL.
I'm a tabs person.
Whenever I ask for a restaurant, leave out the chains.
Be concise in all your replies.
I speak Portuguese, so write to me in Portuguese.
I'm vegan and my partner is too.
My preference is a window seat, near the front.
Always format dates as ISO 8601.
I avoid gluten.
From here on use my work address for deliveries.
Speak to me in plain words, no jargon.
I always pay with my company card.
I prefer to be contacted by text message.
I'd like you to always include the unit tests.
Do not ever suggest cilantro.
You should always check the calendar before you propose a time.
Remember, I need wheelchair access wherever we book.
I hate phone calls, so please only email me.
My go-to airport is Oakland.
In general I prefer quiet hotels away from the centre.
I drink decaf only.
Never wake me before seven.
We always deploy on Tuesdays, so plan around that.
At all times keep the tone formal.
Never put my children's names in an email.
I take my tea with oat milk.
I much prefer trains to planes.
Please address me by my first name.
I don't want emojis in my emails.
Until further notice ship everything to the Leeds office.
I only use Firefox.
I like my explanations with an example.
When you write commit messages, use the imperative mood.
I'd always rather have the vegetarian option.
Please stop sending me reminders on weekends.
My meal preference is kosher.
I don't do spicy food.
Give me prices in euros from now on.
Write all my texts in lower case.
I'm more of a night person, so suggest late slots.
Just call me Bo.
For all future bookings use the corner room.
No small talk, please.
I work best with step by step instructions, so always give me those.
I keep kosher.
Always leave a blank line between functions.
""".strip().splitlines()

WEAK = """
I like jazz.
I'd prefer the earlier flight.
I love hiking in the rain.
Could you make it a bit shorter?
I'd rather leave on Friday.
I'm a big fan of slow mornings.
I want the cheapest one for this trip.
I don't like the second option.
Window seat for this one, please.
I enjoy cooking with my kids.
I hate crowded places.
I'm really into pottery lately.
Ideally somewhere close to the beach.
I tend to skip breakfast.
I'd like extra legroom on this flight.
Please use my credit card for this.
I'm not a fan of horror films.
I usually go running on Sundays.
I would love something with a balcony.
I dislike long layovers.
Make it shorter this time.
I like the blue one better.
I'm keen on photography.
I could really do without the second paragraph.
Preferably before noon.
I'd appreciate a quick answer on this.
Use the second address for today's order.
I'm fond of old bookshops.
I adore my garden.
If possible, no stops this time.
The earlier one works better for me.
I love that you can see the river from there.
I need it to be under 200 dollars.
I'd rather not pay by card today.
I'm happy with economy for this one.
I can't stand the noise in that cafe.
Dark mode suits me.
I normally have lunch at one.
I've always loved the sea.
Please don't send it before Monday.
""".strip().splitlines()

NONE = """
Do you prefer tea or coffee?
Should I always use parentheses here?
She said she always prefers the window.
If I preferred trains, what would you suggest?
I don't mind either way.
It doesn't matter to me.
Oh great, I just love waiting on hold for an hour.
My boss told me "always answer within a day".
Write a story in which the hero says call me Ishmael.
As a customer, I want to reset my password.
I have no preference.
Whatever you prefer is fine.
What's your favourite colour?
Thanks, that helps a lot!
The manual says: never open the case.
The meeting moved to Thursday.
Suppose I am allergic to peanuts, what then?
He never calls me back.
Imagine I only eat halal, where would I go?
Translate this: I prefer the aisle seat and I never fly at night.
Is it true that vegans never eat honey?
Call me back tomorrow.
Never mind, I found it.
My reservation is XK4P2L.
You always make me laugh.
I never said that I prefer meat.
I used to prefer coffee when I was a student.
Yeah right, because I love being double charged.
We went to the lake last weekend.
I've never been to Japan.
Can I always cancel within a day?
My sister is allergic to cats.
> I prefer to be contacted by phone
Maybe I prefer the red one, I'm not sure yet.
The customer wrote: please never call me again.
I wish I could always fly business.
Let's say I prefer Python, which framework fits?
I always thought the sun was a planet.
How do I tell someone to stop calling me?
People always say that I look like my mother.
I don't always eat meat but tonight I might.
In the future, I hope to start a charity.
Remember when we went to Rome?
Always a pleasure, thanks!
From now on things can only get better.
The code never returns when the list is empty.
Every time I run it, the test fails.
Whenever I see her, she smiles.
Could you explain why the docs say never use eval?
Draft an email to my landlord saying that I don't eat there anymore.
The function should always return a list, but it returns None.
Stop worrying, you'll do great!
My name tag fell off.
I can't believe how good that was.
Call me crazy, but I think it works.
They prefer cash.
Call me when it's done.
Would you rather have tea?
Just remember, I'm always here for you.
Please summarize the following: I only use Firefox. I never use Chrome.
Sure, I simply adore filling in forms, who doesn't.
I'm not saying I prefer it, only that it exists.
"Never again", he said, and he meant it.
Which seat do most people prefer?
I prefer not to say.
My dog's favourite toy is a shoe.
What if I never eat sugar again?
Does the API always return JSON?
It always rains here.
The error says: always call close().
I guess I could prefer either.
Pretend you are my doctor and I am allergic to penicillin.
My user ID is mia_li_3668.
Yes, please go ahead.
If I always use the same card, do I get points?
According to the leaflet, adults should never take more than four.
I'd love to hear more about your trip!
Whenever you're ready.
Never a dull moment with those two.
Not that I always win.
""".strip().splitlines()

CORRECTIONS = """
No, it's Thursday, not Tuesday.
That's wrong, the capital of Australia is Canberra.
I said two adults, not three.
Actually, my last name is spelled Kowalczyk.
No, I meant the May invoice.
You got the date wrong, it should be June 12.
Not Portland, Oregon. Portland, Maine.
I told you already, the meeting is in room 4B.
Incorrect. The limit is 50 requests per second.
It's Katherine with a K, not Catherine.
You misunderstood me, I want to cancel only the second ticket.
No no, the red one, not the blue one.
That's not right, we use Python 3.11.
I never asked for a refund, I asked for an exchange.
Wrong, my flight leaves at 7 pm.
The budget is 4,000, not 40,000.
You have it backwards, the staging host comes first.
Correction: the deadline is March 3.
I didn't say Paris, I said Parma.
My mistake, the order number is 88213.
Sorry, I misspoke, it's the second floor.
That isn't what I asked for, I asked for the total.
Actually it's "their", not "there".
No, I live in Oslo, not Bergen.
You should be using uv, not pip.
That is not my address, mine is 14 Elm Street.
You mixed up the two accounts, the savings one is mine.
It should say 2024 instead of 2023.
No, my daughter is called Mia, not Maya.
As I said before, it has to be vegan.
""".strip().splitlines()

NOT_CORRECTIONS = """
No, thank you.
No worries, it's fine.
No problem, take your time.
It's not far from here.
Is that wrong?
That's not bad at all.
I said hello to her yesterday.
Not yet, but soon.
No, I haven't seen it.
Actually, could you also book a car?
It is not only cheap but also good.
She said no, it's Tuesday, not Monday.
What went wrong with the order?
No, that will be all.
Why not both?
There is nothing wrong with it.
I meant to call you yesterday.
No way, that's amazing!
You were right about the museum.
If it's Tuesday, not Monday, tell me.
""".strip().splitlines()

DECISIONS = """
Let's go with option B.
We decided to move the launch to April.
I've decided to take the job in Lyon.
OK, we'll use Postgres for the ledger.
Final decision: the logo stays green.
We settled on the cabin near the lake.
I'm going with the larger size.
Agreed, the retro is on Fridays.
We have chosen Terraform over Pulumi.
The plan is to ship in two phases.
I made up my mind: no car this year.
We're sticking with the old vendor.
The team voted for the four-day week.
I picked the blue tiles for the bathroom.
It's settled, we meet at noon.
We opted for a fixed price.
I'll go for the tasting menu.
We landed on the name Aurora.
""".strip().splitlines()

NOT_DECISIONS = """
Have you decided yet?
We haven't decided on a venue.
Should we go with option B?
I can't decide between the two.
If we go with Postgres, what breaks?
She decided to leave early.
What did they decide?
It's hard to pick one.
Maybe we should go with the lake.
The decision is yours.
Let's go for a walk.
I wonder which one they chose.
We still need to decide who drives.
Let me know what you decide.
""".strip().splitlines()

FACTS = """
I live in Oslo with my husband.
My daughter is called Mia.
I was born on 3 May 1988.
I work as a nurse at the children's hospital.
We moved to Denver last year.
My brother Tom just finished his PhD in physics.
I've been playing the violin for 12 years.
Our landlord raised the rent in March.
I adopted a dog named Rex two weeks ago.
My wife and I are expecting a baby in June.
I'm from Sweden originally.
I started a pottery class on Monday.
My car broke down near Tucson yesterday.
I signed up for the marathon in October.
My company makes wind turbines.
I broke my wrist last winter.
Our office is in Lisbon.
I'm 42 years old.
My mother lives in Kyoto.
I quit my job at the bank in January.
We bought a house in Maine last summer.
I run the school's chess club with my friend Nadia.
My birthday is on November 9.
I have two kids, Leo and Ida.
I drive a 2015 Volvo.
""".strip().splitlines()

NOT_FACTS = """
Wow, that's so cool!
Thanks for asking.
What did you do then?
That sounds like a great plan.
Good luck!
How are you?
I see.
Yes, please.
You're welcome, take care!
Absolutely, I agree.
Hmm, okay.
Haha, so true.
Really? Tell me more.
Can't wait to see it!
I'm glad to hear that.
Have a great day!
Sure thing.
Could you send me the link?
Nice.
Why?
""".strip().splitlines()

LATER_DURABLE = """
hey, quick thing: could we keep all answers under five lines going forward? thanks, and never use tables.
pls always give me the metric version of a recipe
Oh and I'm deathly allergic to shellfish, fyi.
I'm not a morning person so please don't ever schedule anything before ten.
Use British spelling whenever you write something for me.
You should know I prefer being called Liz.
Two things about me: I am vegan and I live near the coast.
I always want the total including tax.
Don't round numbers for me, ever.
Honestly I prefer a straight answer over a polite one.
My usual hotel chain is Scandic.
I'd prefer you always asked before spending money.
I don't drink coffee after noon.
Please use the 24-hour clock with me.
When booking trains for me, pick the quiet coach.
No exclamation marks in my emails, ever.
I never want to see ads in a summary.
If I ask for a translation, always keep the original next to it.
Please remember I can't do stairs.
Every time I send you a contract, check the notice period first.
My son is coeliac, so every recipe has to be gluten-free.
I only read plain text emails.
Always spell my surname with two t's.
Stop adding a summary at the end.
I like my summaries in bullet points.
Never deploy on a Friday.
From today on, send receipts to my accountant.
As for seats: aisle, always.
I prefer shorter meetings.
Please keep the tone casual in everything you send out for me.
""".strip().splitlines()

LATER_NONE = """
I told my friend to always lock the door.
Never heard of it.
Why do people always say that?
I always forget my keys.
We never got a reply from the vendor.
He prefers window seats, I think.
My mother always said never go to bed angry.
Could be that I prefer the old one, hard to tell.
The house rules say: always recycle.
I love how the light falls in that photo.
It never stopped raining the whole trip.
In general the hotel was fine.
I'd never seen anything like it.
You never know!
What do you prefer to be called?
Always nice to hear from you.
Say I was allergic to nuts, would this be safe?
We always had a dog when I grew up.
The script should never have been merged.
Every time a bell rings, an angel gets his wings.
I was told to never share this code, is that right?
My favorite part was when he fell in the lake, haha.
Please confirm the booking.
By default the server listens on port 80.
I usually forget, what was the name of that place?
They asked me to stop calling.
Note that the file is missing.
He said I should call him Bo.
For the record, the shop was closed.
Can you explain what "never events" are?
""".strip().splitlines()

LAST_DURABLE = """
Can't do dairy, never could, so leave it out of every recipe.
Please, whatever you write for me, keep it in the present tense.
I only travel with hand luggage.
Do not ever book me on a middle seat again.
I'd like all prices in pounds from here on out.
Call me by my middle name, Jo.
For me it has to be a smoke-free room, every time.
Never CC my boss on drafts.
I prefer my steak rare.
Address the letters to Dr. Hill, not Mr. Hill, from now on.
I hate being called sir.
Please answer in Spanish unless I write in English.
We use two-space indentation everywhere.
I don't like long introductions, skip them.
My favourite airline is ANA.
I'm left-handed, remember that when you suggest tools.
Whenever there's a choice, take the cheaper one.
Keep the jargon out of anything you send to my parents.
I never read past the first paragraph, so put the point there.
Text me, don't call, that goes for everything.
""".strip().splitlines()

LAST_NONE = """
We never close, says the ad.
My brother prefers the bus.
Always look on the bright side!
I have always wanted to see Iceland.
She asked him never to call again.
Which browsers do you always test on?
I'd be lost without you.
They never told us about the fee.
That never happens to me.
He goes by Bo, I think.
You should see the view from up here.
It would be better if I always won.
Everyone prefers the old design.
Whenever it rains, the cellar floods.
We stopped using that vendor in May.
My first name is on the list already.
The recipe says to never stir it.
Do I always have to log in?
I'm just kidding, I never sleep.
Thank you so much, you always help!
""".strip().splitlines()
