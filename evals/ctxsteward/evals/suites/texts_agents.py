# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""What agents are told to do, how people break in on them, and what they say on the way; two halves a language."""

from __future__ import annotations

from typing import NamedTuple


class Phrasings(NamedTuple):
    """``{thing}`` is a noun of the talk's subject, ``{code}`` a reference that only the task names."""

    tasks: tuple[str, ...]
    orders: tuple[str, ...]
    """What later turns ask for, with tools."""
    where: tuple[str, ...]
    """``{path}`` is a file."""
    breaks: tuple[str, ...]
    """What a user says in the middle of a loop."""
    steps: tuple[str, ...]
    """What an agent says beside its calls."""
    errors: tuple[str, ...]
    about_task: tuple[str, ...]


DEV: dict[str, Phrasings] = {
    "en": Phrasings(
        tasks=(
            "Find out why the nightly job for the {thing} writes too few rows and repair it. File everything under {code}.",
            "Compare the three offers for the {thing} and write a recommendation of one page. Our reference is {code}.",
            "Go through the open reports on the {thing}, answer what you can, and leave a summary in {code}.",
            "Migrate the {thing} to the new host without losing a record; the change number is {code}.",
        ),
        orders=("Have a look at the {thing} first.", "Check the numbers for the {thing} again.", "Please look into the {thing} before you go on.", "What do the logs say about the {thing}?", "Run the checks on the {thing}.", "Search for anything about the {thing}."),
        where=("Start with {path}.", "It is about {path}.", "{path} should tell.", "Don't bother with {path}."),
        breaks=("Stop for a second, did you see the mail?", "Wait, one thing before you go on.", "Sorry to interrupt, is this still running?", "Hold that thought, somebody is at the door.", "Actually, use the smaller sample."),
        steps=("Looking into it.", "Next step.", "That narrows it down.", "Trying another way.", "", "", ""),
        errors=("ERROR: connection reset after {n} ms", "Traceback (most recent call last):\n  File \"run.py\", line {n}\nKeyError: 'rows'", "HTTP 503: upstream busy, retry in {n} s", "permission denied: /srv/jobs/{n}"),
        about_task=("What was the task again?", "Remind me what you are working on.", "What did I ask you to do at the very beginning?"),
    ),
    "zh": Phrasings(
        tasks=(
            "查清楚{thing}的夜间任务为什么写少了行，并修好。资料都归到{code}下面。",
            "比较{thing}的三家报价，写一页建议书，我们的编号是{code}。",
            "把{thing}的未结报告过一遍，能答的就答，总结放到{code}。",
            "把{thing}迁到新主机，一条记录都不丢，变更号{code}。",
        ),
        orders=("先看看{thing}。", "{thing}的数字再核一遍。", "往下走之前先查一下{thing}。", "日志里{thing}是怎么说的？", "给{thing}跑一遍检查。", "搜一下跟{thing}有关的。"),
        where=("从{path}开始。", "跟{path}有关。", "{path}里应该有。", "{path}就不用看了。"),
        breaks=("先停一下，邮件看到了吗？", "等等，往下之前有件事。", "打断一下，还在跑吗？", "稍等，有人敲门。", "还是用小一点的样本吧。"),
        steps=("正在看。", "下一步。", "范围缩小了。", "换个办法试试。", "", "", ""),
        errors=("错误：{n}毫秒后连接被重置", "Traceback (most recent call last):\n  File \"run.py\", line {n}\nKeyError: 'rows'", "HTTP 503：上游繁忙，{n}秒后重试", "权限不足：/srv/jobs/{n}"),
        about_task=("任务是什么来着？", "提醒我一下你在忙什么。", "一开始我让你做什么？"),
    ),
}  # fmt: skip

HELD_OUT: dict[str, Phrasings] = {
    "en": Phrasings(
        tasks=(
            "The {thing} has given odd results since the upgrade. Track down the cause and propose a patch; the case is {code}.",
            "Prepare the audit of the {thing}: collect the evidence, note the gaps, and send the folder {code}.",
            "I need a list of every place that depends on the {thing}, with an owner for each, stored as {code}.",
            "Clean up the archive of the {thing} and report what you removed. It is known as {code}.",
        ),
        orders=("Could you open the {thing}?", "I'd like to see how the {thing} is doing.", "Pull up the entries on the {thing}.", "Dig a little into the {thing}, please.", "Measure the {thing} once more.", "Is there a trace of the {thing} anywhere?"),
        where=("I mean {path}.", "The file is {path}.", "Maybe {path} helps.", "Leave out {path}."),
        breaks=("Hey, how long will this take?", "Pause. I have a question.", "Not so fast, please.", "One moment, my screen froze.", "By the way, lunch is here."),
        steps=("One more look.", "Going deeper.", "This looks promising.", "Once again from the top.", "", "", ""),
        errors=("fatal: remote hung up unexpectedly ({n})", "AssertionError: expected {n} rows, found none", "429 Too Many Requests, window {n}", "disk quota exceeded on volume {n}"),
        about_task=("Tell me your assignment.", "Which job did I give you?", "What are we here for?"),
    ),
    "zh": Phrasings(
        tasks=(
            "{thing}升级以后结果不对劲。找出原因，给个补丁方案，案号{code}。",
            "准备{thing}的审计：收集证据，列出缺口，文件夹{code}发出去。",
            "我要一份清单，凡是依赖{thing}的地方都列上，每处写上负责人，存成{code}。",
            "清理{thing}的归档，删了什么写个报告，代号{code}。",
        ),
        orders=("打开{thing}看看？", "想知道{thing}现在如何。", "把{thing}的条目调出来。", "麻烦深挖一下{thing}。", "再量一回{thing}。", "哪儿还有{thing}的痕迹吗？"),
        where=("我说的是{path}。", "文件是{path}。", "也许{path}有帮助。", "{path}略过。"),
        breaks=("喂，要多久啊？", "暂停，我有个问题。", "慢点，别这么快。", "稍候，我的屏幕卡了。", "对了，午饭到了。"),
        steps=("再看一眼。", "往深处走。", "有点眉目了。", "从头再来。", "", "", ""),
        errors=("fatal: 远端意外断开（{n}）", "断言失败：应有{n}行，一行也没有", "429 请求过多，窗口 {n}", "卷 {n} 磁盘配额已满"),
        about_task=("说说你的任务。", "我交给你的是哪件活？", "我们在忙什么来着？"),
    ),
}  # fmt: skip
