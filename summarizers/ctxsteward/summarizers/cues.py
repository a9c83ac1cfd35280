# ruff: noqa: E501  -- a phrasing a line reads better than wrapped ones
"""The words by which people state rules, decisions, updates, errors, tasks and preferences, in English and Chinese.

A cue is a phrase with a weight of 1 (weak: counts only with company), 2 or 3 (enough alone). ``*`` stands for a gap of
at most `GAP_WORDS` words (English) or `GAP_CHARS` characters (Chinese); a leading ``^`` asks for the start of the
sentence or of a clause. English phrases are found by their first word, Chinese ones by their first character, so a
sentence without any costs one dictionary look-up a word. The lists are hand-set; nothing is trained.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

CueKind = Literal[
    "rule",
    "bound",
    "decision",
    "update",
    "revoke",
    "error",
    "open",
    "goal",
    "todo",
    "over",
    "again",
    "preference",
    "label",
    "event",
    "chatter",
]
GAP_WORDS = 7
GAP_CHARS = 14


class CuePhrase(NamedTuple):
    """One phrase: `first` is its first word or character, `rest` what must follow."""

    kind: CueKind
    weight: int
    first: str
    rest: tuple[str, ...]
    at_start: bool


_ENGLISH: tuple[tuple[CueKind, int, str], ...] = (
    ("rule", 3, """
        never; must; mustn't; ^don't; please don't; ^do not; do not; under no circumstances; at all costs; off limits;
        off-limits; forbidden; prohibited; not allowed; isn't allowed; aren't allowed; make sure nobody; make sure no;
        make sure that no; make sure nothing; make sure we never; make sure you never; nobody * gets; nobody * may;
        nobody * should; nobody * can; nobody * is to; ^nobody; ^no one; no one * may; no one * should; no one * can;
        no one gets; ^nothing * leaves; ^nothing * goes; ^nothing * gets; ^nothing * without; ^no * without;
        we can't have; i can't have; can't afford to; cannot be; can't be; may not; hands off; keep * out of;
        keep * away from; keep * off; keep * to yourself; stays out of; stay out of; stays inside; stay inside;
        stays between; stays within; leave * alone; leave * untouched; leave * as is; leave * where; is untouchable;
        non-negotiable; no exceptions; without exception; the answer is no; eyes only; eyes alone; strictly;
        confidential; need to know; sign-off; signs off; sign off; signed off; approval; approves; permission;
        consent; only after; only once; only if; only when; only with; not until; until i say; until i've; until i have;
        until i give; before i * okay; hold off; ask me; check with me; run * by me; okay from me; my okay;
        my ok; my go-ahead; my say-so; without asking; without my; without checking; without telling; without a human;
        without someone; without somebody; without two; allergic; allergy; allergies; anaphylactic; epipen; lethal;
        life-threatening; red line; line we don't cross; dealbreaker; deal breaker; whatever happens; no matter what;
        no matter who; even if they ask; even if someone asks; even if i ask; under any circumstances; under any;
        in any circumstances; ^refuse; ^avoid; treat * as; not to be; isn't to; aren't to; is not to; are not to;
        should never; has to stay; have to stay; must stay; needs to stay; has to be; have to be; is required;
        are required; is mandatory; mandatory; compulsory; goes through * first; go through * first; by law;
        legally; hipaa; gdpr; at no point; on no account; in no case; nowhere near; not even; the moment * stop;
        will not; won't be allowed; shall; shall not; has no business; have no business; nor should; not ours to;
        not for; stays put; stay put; stays private; stay private; stays off; stay off; doesn't leave; don't leave;
        not leave; never leaves; sacred; frozen; fireable; gets us fired; gets us sued; not up for; no touching;
        are out; is out; hard no; not a * more; not one * more; no more than that; belongs to; hard rule; house rule; rule is; rule that; rule of thumb; ground rule; the deal is
     """),
    ("rule", 2, """
        always; unless; don't; can't; cannot; shouldn't; should not; couldn't; only; without; until; has to; have to;
        ^keep; ^leave; ^always; every time; each time; each and every; in all cases; any time; anything * needs;
        anyone; anybody; nobody; no one; nothing; none of; not want; don't want; wouldn't want; i'd rather not;
        rather not; instead of asking; private; secret; secrets; sensitive; privileged; embargo; embargoed; privacy; safety; dangerous; risk; irreversible;
        ^no; needs two; takes two; two people; second pair; first thing; by hand; lawyer; legal; compliance;
        regulator; auditors; stop and; stops; locked; lock; protected; fragile; restricted; limited to; reserved for; for * only;
        exclusively; expected to; supposed to; required to; ^stick to; ^stay; burned; burnt; got burned; got bitten
     """),
    ("rule", 1, """
        should; need to; needs to; ought; except; except for; insist; insists; important; crucial; critical; essential;
        careful; beware; watch out; remember; rule; rules; policy; require; requires; requirement; not; avoid;
        mustnt; neither; anything; everything; every; all; ensure; make sure; guarantee; first; before; when
     """),
    ("bound", 2, """
        at most; at least; no more than; no less than; no fewer than; no later than; no earlier than; not more than;
        maximum; minimum; max; min; limit; limits; limited to; cap; capped; caps; ceiling; floor; tops out; top out;
        upper bound; lower bound; threshold; budget; within; under; below; above; over; beyond; up to; exceed; exceeds;
        deadline; due; by the end; latest; not past; quota; fits; room for; can't spend; more than; less than;
        fewer than; longer than; shorter than; max out; maxes out; tight; that's all; everything we have; hard stop
     """),
    ("decision", 3, """
        let's go with; let us go with; go with; settled; built on; going with; went with; we'll use; we will use; i'll use; let's use;
        settle on; settling on; decided; decide on; decision; we're using; we are using; chose; chosen;
        picked; picking; we pick; i pick; opted; opting; agreed; we agree; it is then; wins; winner;
        final answer; final call; final pick; locked in; lock in; locking in; the plan is; we're going; verdict;
        we've landed; landed on; landing on; the call is; made the call; signed off on; greenlit; green light;
        let's make it; sold on; convinced; committed to; commit to; book the; book it; the vote; voted; consensus;
        conclusion; concluded; resolved to; we're sticking; sticking with; stick with; our choice; my choice; the choice;
        preferred option; is the one; that's the one; the one we; gets the nod; gets the job; went for; go for; going for;
        we're doing; let's do; let's call it; let's name it; name it; call it; named it; standardise on; standardize on;
        standardizing on; build it on; building on; build on; will be called; is called; signed with; went ahead
    """),
    ("update", 3, """
        ^scratch; fell through; instead; changed to; change to; changed from; change * to; moved to; moved * to; move * to; moved from; switch to; switched to; switch * to;
        switching to; scratch that; scratch the; correction; corrected; no longer; not anymore; any more; anymore; bumped;
        bump * to; bump it; raise * to; raised * to; raised to; lower * to; lowered to; lowered * to; cut to; cut * to;
        reduce * to; increase * to; increased to; make it; make that; revised; revise; rescheduled; reschedule;
        postponed; pushed to; push * to; pushed back; pushed * to; brought forward; on second thought; second thoughts;
        changed my mind; change my mind; change of plan; change of plans; changes of plan; rather than; swap * for;
        swapped * for; replaced by; replaced with; replace * with; replaces; supersedes; overrides; override; forget the;
        turns out; i misspoke; misspoke; my mistake; i was wrong; was wrong; that was wrong; i said * but; wrong number;
        typo; from now on; going forward; as of today; as of now; as of this; not * but; used to be; was * now; is now;
        are now; now it's; it's now; now stands; now at; now reads; new number; new figure; new value; new date; new address;
        new deadline; new limit; updated to; update * to; upgraded to; upgrade * to; downgrade * to; extended to;
        extend * to; shortened to; shorten * to; dropped to; drop * to; up from; down from; slipped to; slips to;
        moves to; changes to; becomes; became; renamed; rename; relocated; rebooked; amended; amend; adjust * to; adjusted to; after all;
        set it to; set * to; took over; takes over; migrated to; migrate to; migrating to; moved off; moving off; moving to;
        shifted to; shift * to; went up; went down; gone up; came down; strike that; ignore what;
        ignore the earlier; ignore my; disregard; forget what; earlier i said; i told you; i gave you; you can forget
     """),
    ("update", 1, "wait; hold on; not the; actually; now; new; update; updated; currently; latest; these days; today; sorry; oops; today's"),
    ("revoke", 3, """
        can * again; may * again; is open * again; fine after all; okay after all; fine again; allowed after all; doesn't matter any; does not matter any; no longer matters; there is no limit; has no limit;
        have no limit; rule * is gone; rule * is off; ban * is gone; no longer restricted; is unrestricted; no issue * any more; without limit; at any time now;
        at any hour now; needs no * any; need no * any; drop that; drop the rule; drop the requirement; drop this rule; drop the restriction; drop the ban; lift the;
        lifted; forget that rule; forget the rule; forget about the; no longer applies; no longer apply;
        doesn't apply anymore; don't need to * anymore; no longer need; no longer needed; not needed anymore;
        ignore that rule; ignore the rule; rule is gone; rule is off; is allowed again; are allowed again;
        is fine again; are fine again; waive; waived; scrap the; scrap that; scrapped; cancel that; never mind the;
        never mind about; we're not doing; we aren't doing; decision is off; that's off; is off the table; undo that; take back; taking back
     """),
    ("error", 3, """
        error; errors; failed; fails; failing; failure; exception; crash; crashed; crashes; traceback; timeout; timed out;
        broken; bug; broke; segfault; denied; rejected; unreachable; refused; stack trace; exit code; outage; incident
     """),
    ("error", 1, "wrong; stuck; missing; problem; issue; can't find; invalid; unexpected; fix; fixed; workaround; leak; leaking"),
    ("open", 2, """
        todo; to-do; remind me; don't forget; do not forget; still need; still needs; still have to; still open; outstanding;
        follow up; follow-up; next step; next steps; pending; waiting for; waiting on; awaiting; blocked; can you; could you;
        please; i need; i want; i'd like; we need; i have to; we have to; need to figure; figure out; would you; help me;
        your task; the task; unresolved; tbd; not yet; left to do; assigned to; on my list; by when
     """),
    ("goal", 3, """
        goal is; goals are; the goal; our goal; my goal; a goal; new goal; smaller goal; aim is; my aim; our aim; the aim; new aim; aim for; aiming for; aiming to;
        target is; our target; my target; the target; the objective; our objective; the mission; the point is; whole point; milestone; in the end we;
        in the end i; what i'm after; what we're after; ultimately; above all; step towards; on the way to that; trying to achieve; trying to reach;
        part of it is; before we get there; want to achieve; want to end up; hope to; hoping to; set myself to; set ourselves to; what matters is to; the idea is to
    """),
    ("todo", 3, """
        todo; to-do; remind me to; don't forget to; do not forget to; still need to; still needs to; still have to; still has to; still open; on my list; on the list;
        on our list; on my plate; still outstanding; is outstanding; left to do; remains to; remains is to; next up; mustn't forget; must not forget; need to remember;
        put down that; note that we; note that i; note down; somebody needs to; someone needs to; somebody has to; someone has to; yet to; to be done; action item;
        assigned to; pending; waiting for
    """),
    ("over", 3, """
        done; finished; completed; complete; tick; ticked; cross it; cross that; check that off; checked off; off the list; off my list; off my plate;
        taken care of; took care of; sorted; settled; all set; one less; great news; good news; made it; accomplished; achieved; behind us; reached the goal; goal down;
        no longer need; no need to; won't need; won't; forget about; scratch that; never mind; skip; don't have to; doesn't have to; don't need to; not needed; needs no;
        no longer needed; leave it; can be left; drop it; dropped; called off; is gone; hooray; stop worrying
    """),
    ("again", 3, """
        has to be * again; have to be * again; needs to be * again; need to * again; once more; back on the list; a second time; open again; isn't * yet;
        not * after all; isn't * after all; not * yet; reopen; reopened; redo; start over; not done; undone
    """),
    ("preference", 2, """
        prefer; prefers; preferred; i like; i love; i hate; i dislike; i'd rather; i would rather; favourite; favorite;
        rather have; can't stand; i enjoy; not a fan; big fan; my style; suits me; works best for me; works better for me;
        i tend to; i usually; i always; vegetarian; vegan; gluten; halal; kosher; i'm more of; fond of; keen on
     """),
    ("label", 2, """
        codename; code name; codenamed; password; passcode; passphrase; pin; access code; door code; confirmation; reference;
        booking; order number; ticket number; tracking number; serial; serial number; account number; invoice number;
        case number; licence; license; plate; username; login; handle; token; api key; key is; id is; reachable at; extension;
        address is; email is; number is; code is; named; nicknamed; branch; commit; tag; bucket; hostname; listed as; filed as;
        filed under; goes by; registered as; registered under; under the name; model; room; gate; seat; flight; wifi; locator
     """),
    ("event", 1, """
        yesterday; tomorrow; tonight; next week; last week; next month; birthday; wedding; anniversary; meeting; appointment;
        my wife; my husband; my son; my daughter; my mother; my father; my boss; my manager; our team; my job; my home;
        my doctor; our client; our landlord; moved; married; born; launch; launches; launched; release; interview
     """),
    ("chatter", 2, """
        don't know; don't think; don't remember; don't recall; not sure; not urgent; not important; none of them could; none of us could; nobody could; can't wait; never mind; no problem; no worries;
        no rush; don't worry; can't believe; no idea; don't mind; never heard; not bad; couldn't agree; couldn't find;
        can't find; can't tell; can't remember; can't seem; didn't know; doesn't matter; no need to; no big deal; haven't;
        hasn't; wasn't; weren't; didn't; couldn't help; can't say; can't complain; don't see; don't understand; can't see; no doubt; not really; no surprise; not only; nothing urgent; if you don't;
        all good; sounds good; makes sense; fair enough; let me know; feel free; happy to; glad to; here's; here is a; of course;
        no hurry; nothing special; nothing new; nothing else; never seen; if you want; if you like; would you like; anything else; in general; for example; for instance; typically;
        it depends; can help; i can; i could; you can; you could; you might; one option; might want; may want; it's worth; worth noting; generally; as always; as usual
     """),
)  # fmt: skip

_CHINESE: tuple[tuple[CueKind, int, str], ...] = (
    ("rule", 3, """
        不要;不能;不得;不许;不准;不可以;不可;不允许;禁止;严禁;切勿;切记;绝不;绝对不;决不;必须;务必;千万;一律;只能;只允许;
        仅限;只有*才;除非;任何人;谁都不;谁也不;一定要;一定得;未经;保密;不外传;不对外;碰不得;动不得;别动;别碰;别把;别给;别让;
        别跟;别在;别往;别用;别发;别删;别改;别提;别透露;别擅自;别自己;过敏;底线;红线;免谈;没得商量;没商量;没有例外;点头;
        点了头;签字;签过字;批准;审批;拍板之前;才能;才可以;方可;之前不;以前不;之前别;先问;先经;得先;
        要先;先过;再小也;哪怕;就算*也;不管*都;不论*都;无论*都;无论如何;不管怎样;不管谁;谁来;谁问;出不得;不写进;
        不落;不离开;不能有;不该;不应;机密;涉密;违法;危险;致命;休克;不可逆;双人;两个人;
        两人;亲自;留着别;原样;原封不动;锁死;锁着;锁定;封存;冻结;到此为止;烂在肚子里;止步;无权;没有权限;当没看见;
        拒绝;一概;凡是;凡;不开放;不删;不让
     """),
    ("rule", 2, "安全;责任;合规;法务;法律;同意;本人;人工;永远;始终;才行;先给;先跟;授权;不发;不给;不谈;不接;不卖;不上;不往;不出;不进;不碰;敏感;隐私;别;只;都要;都得;应该;需要;避免;注意;小心;每次;所有;要求;规定;规矩;原则;没经过;不用;不想;不希望;没有*之前;前提;尽量"),
    ("bound", 2, """
        最多;最少;至少;不超过;不少于;不低于;不高于;不晚于;不早于;上限;下限;以内;之内;以下;以上;之前;截止;截至;限;封顶;顶多;
        撑死;预算;最晚;最迟;最早;阈值;控制在;超过;低于;高于;大于;小于;只够;只能装;坐得下;坐不下;装不下
     """),
    ("decision", 3, """
        决定;就用;就选;就定;就按;就走;就叫;定了;定下;定在;定为;选定;敲定;确定;商定;说好;说定;拍板;最终;最后选;最后用;采用;
        选了;选用;改用;用的是;走*方案;方案是;投票;一致;胜出;入选;结论;通过了;谈妥;谈好;签了;订了;订好;交给;命名为;取名;叫做;统一用;统一成;还是用;还是选;那就
     """),
    ("update", 3, """
        改成;改为;改到;改在;改用;改走;改期;改签;换成;换到;换了;不再;更正;纠正;调整到;调整为;调整成;调到;调成;调高;调低;推迟到;推迟;延期;延到;
        延长到;延长;提前到;缩短到;缩短;降到;降为;降至;升到;升级到;升为;提到;提高到;涨到;加到;增加到;减到;减为;砍到;放宽到;放宽;
        收紧到;之前说的;刚才说;前面说的;说错了;记错了;写错了;搞错了;弄错了;口误;作废;取代;替换;替代;而不是;不是*是;变成;变更;变了;
        现在是;现在改;现在用;现在变;从*到;从*改;从*调;从现在起;即日起;以后由;今后由;改由;更新为;更新成;更新到;新的;最新;以后都;今后;从今天起;往后;算了;还是*吧;转到;转给;移到;挪到;搬到;迁到;换*来;接手;重新定
     """),
    ("update", 1, "提前;现在;其实;目前;不对;抱歉;今天起;后来"),
    ("revoke", 3, "谁*都行;随便*了;停用了;不再限;不再封;不再管;解禁;都行了;不限了;无所谓了;取消;撤销;解除;不用再;不必再;没必要再;不作数;收回;不算了;可以不用;废除;解禁;放开了;不再要求;不再需要"),
    ("error", 3, "错误;报错;失败;异常;崩溃;超时;故障;宕机;挂了;出错;拒绝访问;连不上;打不开"),
    ("error", 1, "问题;缺失;不对;不通;修复;bug"),
    ("open", 2, "待办;提醒我;别忘了;还要;还没;还需要;待确认;待定;跟进;下一步;等待;请;帮我;麻烦;能不能;可不可以;我要;我想;我需要;尚未;负责"),
    ("goal", 3, "目标;指标;最终要;最终想;说到底;我想要的是;我们想要的是;最要紧的;里程碑;为了这个;其中一步;图的就是;力争;争取"),
    ("todo", 3, "待办;提醒我;别忘了;不要忘了;还得;清单上;记一下;记一笔;还没做;还没弄;要做的;剩下的是;剩下要;得有人;接下来要;接下来：;不能忘"),
    ("over", 3, "完成;搞定;办妥;弄好;做好;做完;好了;完了;掉了;成了;过了;空了;妥了;划掉;勾掉;不用惦记;做到了;好消息;不用操心;不必再;没必要;不弄了;不用*了;跳过;取消;算了;大功告成"),
    ("again", 3, "重新;再*一次;再*一遍;第二遍;没弄好;没弄完;没做好;放回清单;又变成;还没完;返工;重来"),
    ("preference", 2, "喜欢;偏好;更爱;讨厌;宁可;宁愿;倾向;习惯;爱吃;不爱;受不了;吃素;素食;清真;口味"),
    ("label", 2, """
        代号;密码;口令;验证码;编号;单号;订单号;工单;航班;车次;房号;房间号;账号;户名;车牌;型号;序列号;分支;域名;地址;电话;邮箱;
        微信;群号;取件码;门禁;合同号;发票号;批次;批号;名字叫;叫作;用户名;链接;座位;登机口;尾号;流水号;登记的是;挂在;挂的是
     """),
    ("event", 1, "昨天;明天;今晚;下周;上周;下个月;生日;婚礼;会议;预约;我老婆;我老公;我儿子;我女儿;我妈;我爸;老板;客户;上线;发布"),
    ("chatter", 2, "不知道;不清楚;不好意思;不客气;没关系;没问题;不确定;不记得;差不多;好不好;是不是;要不要;不用谢;了不起;不错;不过;不少;比如;例如;一般来说;通常;可以考虑;建议;如果需要;随时;请问;对不对;不同;一般"),
)  # fmt: skip


def _table() -> tuple[dict[str, tuple[CuePhrase, ...]], dict[str, tuple[CuePhrase, ...]]]:
    english: dict[str, list[CuePhrase]] = {}
    for kind, weight, block in _ENGLISH:
        for phrase in block.split(";"):
            words = phrase.strip().lstrip("^").split()
            cue = CuePhrase(kind, weight, words[0], tuple(words[1:]), phrase.strip().startswith("^"))
            english.setdefault(words[0], []).append(cue)
    chinese: dict[str, list[CuePhrase]] = {}
    for kind, weight, block in _CHINESE:
        for phrase in block.split(";"):
            head, *tail = phrase.strip().split("*")
            chinese.setdefault(head[0], []).append(CuePhrase(kind, weight, head, tuple(tail), False))
    return {k: tuple(v) for k, v in english.items()}, {k: tuple(v) for k, v in chinese.items()}


ENGLISH, CHINESE = _table()


def follows(words: list[tuple[int, str]], index: int, cue: CuePhrase) -> bool:
    """Whether the rest of an English cue follows word `index`; words are (offset, lower-case word)."""
    at, gap = index + 1, 0
    for wanted in cue.rest:
        if wanted == "*":
            gap = GAP_WORDS
            continue
        stop = min(len(words), at + gap + 1)
        while at < stop and words[at][1] != wanted:
            at += 1
        if at >= stop:
            return False
        at, gap = at + 1, 0
    return True


def follows_chinese(text: str, start: int, cue: CuePhrase) -> bool:
    """Whether a Chinese cue stands at `start` of the text."""
    if not text.startswith(cue.first, start):
        return False
    at = start + len(cue.first)
    for part in cue.rest:
        found = text.find(part, at, at + GAP_CHARS + len(part))
        if found < 0:
            return False
        at = found + len(part)
    return True
