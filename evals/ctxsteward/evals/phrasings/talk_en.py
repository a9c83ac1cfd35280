# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""What people talk about in passing, in English: four subjects to tune on, four that are held out.

A subject has things (nouns that fit ``{thing}``), what users ask or remark, and what assistants answer; openings and
closings go around either. ``{n1}``, ``{n2}``, ``{n3}`` are numbers of so many digits or so.
"""

from __future__ import annotations

from . import SmallTalkPool, SmallTalkSubject

DEV = SmallTalkPool(
    subjects={
        "help desk": SmallTalkSubject(
            things=("password page", "shared mailbox", "printer on the second floor", "meeting room screen", "laptop dock", "phone system", "badge reader", "backup drive"),
            asks=(
                "why does the {thing} behave differently from one day to the next?",
                "is there a way to see who last touched the {thing}?",
                "three colleagues came by about the {thing} and none of them could describe what they saw.",
                "what does the grey icon beside the {thing} mean?",
                "I read the article on the {thing}, and it seems to be about an older version.",
                "could you explain the {thing} to somebody who has never worked in an office?",
                "the {thing} was slow over lunch and came back by itself, which is odd.",
                "how do larger companies organise support for a {thing}?",
            ),
            answers=(
                "The {thing} keeps a small local copy of its settings, so two people can see different states for some minutes. It usually evens out by itself.",
                "Most questions about the {thing} come down to the network, the account or the cable, in that order. A short checklist at the desk saves a lot of walking.",
                "The grey icon stands for a state that is neither on nor off: the {thing} has been found but has not answered. After about {n2} seconds it tries once more.",
                "Larger companies tend to have a first line that listens and a second line that repairs. For the {thing} a page with four pictures does more than a manual of {n2} pages.",
                "When something is slow and recovers, I look at what happens at the same hour on other days. Lunch is when a lot of machines do their housekeeping.",
            ),
        ),
        "coding": SmallTalkSubject(
            things=("parser", "retry loop", "settings module", "date handling", "queue consumer", "command line", "test runner", "import graph"),
            asks=(
                "can you walk me through the {thing} once more, from the outside in?",
                "what would a reviewer say about the {thing} as it stands?",
                "somebody in the channel called the {thing} clever, which I think was not praise.",
                "how do other languages handle the {thing}?",
                "would a diagram of the {thing} help, or does it just get old?",
                "I stared at the {thing} for an hour and then the tests passed, so I'm a little suspicious.",
                "how would you name the parts of the {thing} if you started over?",
            ),
            answers=(
                "From the outside the {thing} is one function that takes text and gives values. Inside, it reads, checks and builds, and each of these could stand alone.",
                "A reviewer would probably ask why the {thing} knows about files at all. Passing in the content makes it easier to follow and to try out.",
                "Other languages solve the {thing} with types: what cannot happen cannot be written. Here a small table and a loop come close, in about {n2} lines.",
                "A diagram of the {thing} gets old within weeks. Two sentences at the top of the file tend to live longer, since they are read by whoever changes it.",
                "Names come last for me. I'd call the parts of the {thing} by what goes in and what comes out, and see which of them I can't explain.",
                "Suspicion is healthy. Often a test passes because the {thing} returns early and nothing behind it was looked at.",
            ),
        ),
        "travel": SmallTalkSubject(
            things=("night train", "old town", "coast road", "ferry", "mountain hut", "market hall", "airport bus", "city museum"),
            asks=(
                "what is the {thing} like at this time of the year?",
                "my sister took the {thing} once and talked about it for weeks.",
                "is the {thing} something for people who get tired easily?",
                "which book would you read before seeing the {thing}?",
                "do locals use the {thing}, or is it only for visitors?",
                "I looked at pictures of the {thing} and they all seem to be taken from the same corner.",
                "what do people eat around the {thing}?",
            ),
            answers=(
                "At this time of the year the {thing} is quiet in the mornings and lively towards evening. Bring something warm, since the wind picks up after sunset.",
                "Locals do use the {thing}, mostly before nine. Later it belongs to visitors, who are easy to tell by their shoes.",
                "It takes about {n2} minutes at a slow pace, with places to sit along the way. The {thing} has shade on one side in the afternoon.",
                "Around the {thing} people eat soups, flat bread and a sort of dumpling that every family makes a little differently. Portions are generous.",
                "Pictures of the {thing} all come from one corner because the other side faces a car park. In person that hardly matters.",
            ),
        ),
        "kitchen": SmallTalkSubject(
            things=("sourdough", "lentil stew", "oven", "cast-iron pan", "herb garden", "rice", "roast", "lemon tart"),
            asks=(
                "why does the {thing} turn out differently at my mother's place?",
                "what can I do with what is left of the {thing}?",
                "a friend swears by steam for the {thing}. Does it make a difference?",
                "how do restaurants get the {thing} so even?",
                "the {thing} looked nothing like the picture, though everybody had seconds.",
                "is there a version of the {thing} for people in a hurry?",
            ),
            answers=(
                "Two kitchens never have the same air, water or pan. With the {thing}, the largest part is heat that is spread unevenly, so turning it halfway helps.",
                "What is left of the {thing} keeps for some days and is often better on the second. A spoon of something sour wakes it up.",
                "Steam keeps the surface soft for the first {n2} minutes, so that it can still stretch. After that it should be dry for the colour.",
                "Restaurants make the {thing} {n2} times a day and throw the first one away. That is most of the secret.",
                "For people in a hurry: do the slow part the evening before and leave the {thing} covered. Ten minutes remain for the day itself.",
            ),
        ),
    },
    openings=("", "", "", "", "Quick question: ", "While that runs: ", "Out of curiosity, ", "Not urgent, but ", "Something I was wondering about on the way here: ", "Hm. "),
    closings=("", "", "", "", " Thanks!", " No hurry.", " I'm just curious.", " My tea is getting cold meanwhile.", " A short answer is fine."),
    replies=("Alright.", "Makes sense.", "Thanks, that's clear.", "Got it.", "Okay, I see.", "Sure.", "Very well.", "Sounds good to me."),
    captions=("Here is what I see:", "For reference:", "This is how it looks:", "Pasting what came back:", "A rough sketch:"),
)  # fmt: skip

HELD_OUT = SmallTalkPool(
    subjects={
        "data work": SmallTalkSubject(
            things=("sales table", "survey export", "weekly chart", "sensor feed", "currency column", "map layer", "pivot", "outlier report"),
            asks=(
                "what would you look at first in the {thing}?",
                "the {thing} has a dent in the middle and everyone explains it in another way.",
                "how do statisticians talk about a {thing} like this among themselves?",
                "does it matter for the {thing} whether one takes the mean or the median?",
                "the {thing} arrived twice this morning, which made me smile.",
                "could one explain the {thing} with a drawing on a napkin?",
                "who invented this kind of {thing} anyway?",
            ),
            answers=(
                "In the {thing} I'd begin with what is missing rather than what is there. Gaps tell who collected it and when they went home.",
                "A dent can be a holiday, a broken clock or a real change, and the {thing} alone cannot tell these apart. A second source of {n3} rows would.",
                "The mean moves with every large value and the median does not. For the {thing} both are within a few percent of each other, so it is a matter of taste.",
                "On a napkin: one line that rises, one that stays, and an arrow where they part. The {thing} says little more than that.",
                "Among themselves they would ask how the {thing} was sampled, and be silent for a while.",
            ),
        ),
        "tutoring": SmallTalkSubject(
            things=("quadratic", "poem", "photosynthesis chapter", "vocabulary list", "essay outline", "periodic table", "history timeline", "word problem"),
            asks=(
                "how would you explain the {thing} to a ten-year-old?",
                "my teacher drew the {thing} upside down and the whole class was lost.",
                "is there a trick for remembering the {thing}?",
                "I get the {thing} when I read it and lose it when I close the book.",
                "what comes before the {thing} that I might have skipped?",
                "are there people who find the {thing} easy from the start?",
            ),
            answers=(
                "To a ten-year-old I'd tell the {thing} as a story with two characters who want different things. What happens between them is the rule.",
                "Reading feels like knowing. Close the book after every half page, say the {thing} aloud in your own words, and look where you stumble.",
                "A trick that works for many is to draw the {thing} from memory, badly, {n1} times in a week. The drawing gets better and so does the memory.",
                "Before the {thing} there is one idea that books pass over in a sentence: the same quantity can be written in two ways. It is worth half an hour.",
                "Some find the {thing} easy because they met something like it elsewhere, in music or in games. Nobody is born with it.",
            ),
        ),
        "project planning": SmallTalkSubject(
            things=("kick-off", "risk list", "steering group", "roadmap", "workshop", "status page", "resource plan", "retrospective"),
            asks=(
                "how long do such things usually take, the {thing} I mean?",
                "in my last company the {thing} was a person rather than a document.",
                "what separates a good {thing} from one that nobody opens?",
                "the {thing} got applause yesterday, to everyone's surprise.",
                "would you do the {thing} in one long session or in pieces?",
                "I have never seen a {thing} that survived the summer.",
                "what do agile people say about the {thing}?",
            ),
            answers=(
                "A good {thing} fits on one screen and answers the question people came with. The rest can hide behind a link.",
                "In pieces, if people come from different places: after {n2} minutes attention drops and the {thing} turns into a lecture.",
                "Agile people would keep the {thing} and rename it. What counts is that somebody reads it aloud once a week.",
                "It usually takes twice as long as the first guess, and half of it is waiting. A {thing} with some air in it is not a lazy one.",
                "Summers are hard on plans. The {thing} survives if one person feels it is theirs.",
            ),
        ),
        "garden": SmallTalkSubject(
            things=("rose bed", "compost heap", "rain barrel", "greenhouse", "apple tree", "lawn", "raised bed", "hedge"),
            asks=(
                "what happens to the {thing} if one does nothing for a year?",
                "the neighbours look at our {thing} with some pity.",
                "which month shows the {thing} at its best?",
                "do bees care about the {thing}?",
                "is it true that coffee grounds help the {thing}?",
                "my grandfather sang to the {thing}, and it never complained.",
            ),
            answers=(
                "Left alone for a year the {thing} turns into what the soil wanted all along. Some of it is rather pretty.",
                "Bees care about flowers and water, and a little disorder. The {thing} offers more of it than most people think.",
                "Coffee grounds do little harm and little good, about {n2} grams a week change nothing. Leaves do more for the {thing}.",
                "The {thing} is at its best in the weeks when nobody has time to look at it. Early mornings are worth the trouble.",
                "A pitying look can be answered with a bowl of something ripe. The {thing} has time.",
            ),
        ),
    },
    openings=("", "", "", "", "Apropos of nothing, ", "Before I forget the thought: ", "You'll know this: ", "Small detour, ", "My colleague wants to know: ", "Ah, "),
    closings=("", "", "", "", " Cheers.", " Just so I understand.", " Tell me in your own words.", " I'm listening while I eat.", " Whenever you get to it."),
    replies=("Fine.", "I follow.", "Yes, clear enough.", "Understood.", "Right.", "Good to know.", "That works.", "Okay then."),
    captions=("This is from the screen:", "What I have at hand:", "Copying it over:", "It goes like this:", "As printed:"),
)  # fmt: skip
