# ruff: noqa: E501  -- a table of sentences reads better than wrapped ones
"""A second profile, of an IT help desk, with pairs of rule and revision: written after the checks, to measure them.

`SAME` keeps what a rule demands, `OPPOSITE` turns it round. Each rule stands in a profile of its own kind (`desk`).
"""

from __future__ import annotations

from typing import NamedTuple

from ctxsteward.schemas.profile import ProfileDocument, ProfileEntry


class Pair(NamedTuple):
    """A rule and what became of it."""

    before: str
    after: str


_FILLING = (
    "You are Otto, the help desk of a company with 900 people. Be patient, name each step and wait for the answer.",
    "Open a ticket for every problem that is not solved within ten minutes, and tell the caller its number.",
    "Printers of the third floor belong to the building's own staff; pass such calls on to extension 4410.",
    "Passwords are reset by the caller on the portal. Walk the caller through the portal page by page.",
    "Laptops are replaced after four years. Orders go through the line manager and take about two weeks.",
    "技术支持热线的工作时间是周一至周五，上午九点到下午六点。",
    "软件安装申请由部门主管审批，审批通过后一个工作日内完成。",
)


def desk(rule: str, *, locked: bool = False) -> ProfileDocument:
    """The profile with this rule in it."""
    filling = tuple(ProfileEntry(id=f"p{n}", text=text) for n, text in enumerate(_FILLING))
    return ProfileDocument(
        name="desk",
        persona=(ProfileEntry(id="voice", text="Calm, exact, and never in a hurry."),),
        policies=(*filling, ProfileEntry(id="rule", text=rule, locked=locked)),
    )


SAME = (
    Pair("Never reset a password over the phone.", "Do not reset passwords over the phone."),
    Pair("Never reset a password over the phone.", "Passwords are never reset over the phone."),
    Pair("Never reset a password over the phone.", "Resetting a password over the phone is not permitted."),
    Pair("Always lock the workstation when you leave the room.", "Lock the workstation whenever you leave the room."),
    Pair("Always lock the workstation when you leave the room.", "Never leave the room without locking the workstation."),
    Pair("Always lock the workstation when you leave the room.", "The workstation must be locked when you leave the room."),
    Pair("Log every change to the firewall within 24 hours.", "Log every change to the firewall within one day."),
    Pair("Log every change to the firewall within 24 hours.", "Every firewall change is logged within 24 h."),
    Pair("Log every change to the firewall within 24 hours.", "Do not leave a change to the firewall unlogged for more than 24 hours."),
    Pair("Log every change to the firewall within 24 hours.", "Never leave a change to the firewall unlogged for longer than 24 hours."),
    Pair("Only administrators may install software.", "Software may be installed by administrators only."),
    Pair("Only administrators may install software.", "Nobody but an administrator may install software."),
    Pair("Only administrators may install software.", "Software must not be installed by anyone other than administrators."),
    Pair("Do not open attachments from unknown senders.", "Never open an attachment from an unknown sender."),
    Pair("Do not open attachments from unknown senders.", "Attachments from unknown senders must not be opened."),
    Pair("Do not open attachments from unknown senders.", "Don't open attachments if you do not know the sender."),
    Pair("Back up the server every night at 2 am.", "The server is backed up every night at 02:00."),
    Pair("Back up the server every night at 2 am.", "Every night at 2 a.m., back up the server."),
    Pair("Ask for approval before you restart a production server.", "Before restarting a production server, ask for approval."),
    Pair("Ask for approval before you restart a production server.", "Do not restart a production server without approval."),
    Pair("Ask for approval before you restart a production server.", "Never restart a production server before you have asked for approval."),
    Pair("Keep the customer's data encrypted at rest.", "Customer data must be kept encrypted at rest."),
    Pair("Keep the customer's data encrypted at rest.", "The customer's data stays encrypted at rest at all times."),
    Pair("Do not discuss salaries with callers.", "Avoid discussing salaries with callers."),
    Pair("Do not discuss salaries with callers.", "Salaries are not discussed with callers."),
    Pair("Do not discuss salaries with callers.", "Decline to discuss salaries with callers."),
    Pair("Be polite and never interrupt a caller.", "Be polite, and do not interrupt callers."),
    Pair("Be polite and never interrupt a caller.", "Always be polite. Never interrupt a caller."),
    Pair("Give at most three options at a time.", "Offer no more than 3 options at once."),
    Pair("Give at most three options at a time.", "Do not give more than three options at a time."),
    Pair("Delete log files that are older than 90 days.", "Log files older than 90 days are deleted."),
    Pair("Delete log files that are older than 90 days.", "Delete log files after 90 days."),
    Pair("Do not keep log files for longer than 90 days.", "Keep log files for at most 90 days."),
    Pair("Confirm the order number with the caller first.", "First confirm the order number with the caller."),
    Pair("Confirm the order number with the caller first.", "Confirm the number of the order with the caller before anything else."),
    Pair("You may skip the survey if the caller is in a hurry.", "If the caller is in a hurry, you may skip the survey."),
    Pair("You may skip the survey if the caller is in a hurry.", "The survey can be skipped if the caller is in a hurry."),
    Pair("Explain errors in plain language, not in codes.", "Explain errors in plain language instead of codes."),
    Pair("Explain errors in plain language, not in codes.", "Use plain language rather than codes to explain errors."),
    Pair("Report a lost laptop to security immediately.", "A lost laptop is reported to security at once."),
    Pair("Report a lost laptop to security immediately.", "Report lost laptops to the security team immediately."),
    Pair("The contract limit is 1,500 euros per order.", "The contract limit is €1500 per order."),
    Pair("The contract limit is 1,500 euros per order.", "Per order, the contract's limit is 1 500 euros."),
    Pair("不得通过电话重置密码。", "禁止通过电话重置密码。"),
    Pair("不得通过电话重置密码。", "密码不得通过电话重置。"),
    Pair("不得通过电话重置密码。", "请勿通过电话重置密码。"),
    Pair("离开座位时必须锁定电脑。", "离开座位时务必锁定电脑。"),
    Pair("离开座位时必须锁定电脑。", "每次离开座位，都要锁定电脑。"),
    Pair("离开座位时必须锁定电脑。", "必须在离开座位时锁定电脑。"),
    Pair("防火墙的变更须在二十四小时内登记。", "防火墙的变更必须在24小时内登记。"),
    Pair("防火墙的变更须在二十四小时内登记。", "防火墙变更要在一天之内登记。"),
    Pair("只有管理员可以安装软件。", "软件只能由管理员安装。"),
    Pair("只有管理员可以安装软件。", "非管理员不得安装软件。"),
    Pair("不要打开陌生人发来的附件。", "陌生人发来的附件不要打开。"),
    Pair("不要打开陌生人发来的附件。", "切勿打开陌生人发来的附件。"),
    Pair("重启生产服务器之前要先申请批准。", "未经批准，不得重启生产服务器。"),
    Pair("重启生产服务器之前要先申请批准。", "重启生产服务器前，必须申请批准。"),
    Pair("每次最多提供三个选项。", "每次提供的选项不超过3个。"),
    Pair("每次最多提供三个选项。", "每次至多给出三个选项。"),
    Pair("日志保存不超过90天。", "日志最多保存九十天。"),
    Pair("用通俗的语言解释错误，不要使用代码。", "解释错误时用通俗的语言，不使用代码。"),
    Pair("电脑遗失要立即报告安全部门。", "电脑遗失后立即向安全部门报告。"),
    Pair("保持礼貌，不要打断来电者。", "要保持礼貌，切勿打断来电者。"),
)  # fmt: skip

OPPOSITE = (
    Pair("Never reset a password over the phone.", "Always reset a password over the phone."),
    Pair("Never reset a password over the phone.", "Passwords may be reset over the phone."),
    Pair("Never reset a password over the phone.", "Reset passwords over the phone."),
    Pair("Never reset a password over the phone.", "Resetting a password over the phone is permitted."),
    Pair("Always lock the workstation when you leave the room.", "Never lock the workstation when you leave the room."),
    Pair("Always lock the workstation when you leave the room.", "Leave the workstation unlocked when you leave the room."),
    Pair("Always lock the workstation when you leave the room.", "There is no need to lock the workstation when you leave the room."),
    Pair("Log every change to the firewall within 24 hours.", "Do not log changes to the firewall within 24 hours."),
    Pair("Log every change to the firewall within 24 hours.", "You may leave a change to the firewall unlogged for more than 24 hours."),
    Pair("Do not leave a change to the firewall unlogged for more than 24 hours.", "Leave a change to the firewall unlogged for more than 24 hours."),
    Pair("Log every change to the firewall within 24 hours.", "No change to the firewall is logged within 24 hours."),
    Pair("Only administrators may install software.", "Administrators must not install software."),
    Pair("Only administrators may install software.", "Only administrators may not install software."),
    Pair("Do not open attachments from unknown senders.", "Open attachments from unknown senders."),
    Pair("Do not open attachments from unknown senders.", "Attachments from unknown senders may be opened."),
    Pair("Do not open attachments from unknown senders.", "Attachments from unknown senders should be opened."),
    Pair("Back up the server every night at 2 am.", "Never back up the server at 2 am."),
    Pair("Back up the server every night at 2 am.", "The server is not backed up every night at 2 am."),
    Pair("Ask for approval before you restart a production server.", "Do not ask for approval before you restart a production server."),
    Pair("Ask for approval before you restart a production server.", "Restart a production server without asking for approval."),
    Pair("Keep the customer's data encrypted at rest.", "Keep the customer's data unencrypted at rest."),
    Pair("Keep the customer's data encrypted at rest.", "Do not keep the customer's data encrypted at rest."),
    Pair("Keep the customer's data encrypted at rest.", "The customer's data need not be encrypted at rest."),
    Pair("Do not discuss salaries with callers.", "Discuss salaries with callers."),
    Pair("Do not discuss salaries with callers.", "You are welcome to discuss salaries with callers."),
    Pair("Do not discuss salaries with callers.", "Salaries can be discussed with callers."),
    Pair("Be polite and never interrupt a caller.", "Be polite and always interrupt a caller."),
    Pair("Be polite and never interrupt a caller.", "Be impolite and never interrupt a caller."),
    Pair("Give at most three options at a time.", "Give at least three options at a time."),
    Pair("Give at most three options at a time.", "Give no fewer than three options at a time."),
    Pair("Delete log files that are older than 90 days.", "Do not delete log files that are older than 90 days."),
    Pair("Delete log files that are older than 90 days.", "Keep log files that are older than 90 days."),
    Pair("Confirm the order number with the caller first.", "Never confirm the order number with the caller."),
    Pair("You may skip the survey if the caller is in a hurry.", "You may not skip the survey if the caller is in a hurry."),
    Pair("You may skip the survey if the caller is in a hurry.", "You may skip the survey unless the caller is in a hurry."),
    Pair("Explain errors in plain language, not in codes.", "Do not explain errors in plain language."),
    Pair("Report a lost laptop to security immediately.", "Never report a lost laptop to security."),
    Pair("Report a lost laptop to security immediately.", "A lost laptop must not be reported to security."),
    Pair("Report a lost laptop to security immediately.", "Conceal a lost laptop from security."),
    Pair("Share the incident report with the auditors.", "Withhold the incident report from the auditors."),
    Pair("Grant access to contractors after a background check.", "Deny access to contractors after a background check."),
    Pair("Allow remote access from home networks.", "Forbid remote access from home networks."),
    Pair("Allow remote access from home networks.", "Block remote access from home networks."),
    Pair("Two-factor login is mandatory for all accounts.", "Two-factor login is not mandatory for any account."),
    Pair("Two-factor login must be enabled for all accounts.", "Two-factor login must be disabled for all accounts."),
    Pair("Tickets must be closed by the caller.", "Tickets must not be closed by the caller."),
    Pair("Include the ticket number in every mail.", "Exclude the ticket number from every mail."),
    Pair("不得通过电话重置密码。", "可以通过电话重置密码。"),
    Pair("不得通过电话重置密码。", "密码可通过电话重置。"),
    Pair("不得通过电话重置密码。", "允许通过电话重置密码。"),
    Pair("离开座位时必须锁定电脑。", "离开座位时无须锁定电脑。"),
    Pair("离开座位时必须锁定电脑。", "离开座位时不要锁定电脑。"),
    Pair("防火墙的变更须在二十四小时内登记。", "防火墙的变更无需在二十四小时内登记。"),
    Pair("防火墙的变更须在二十四小时内登记。", "防火墙的变更不得在二十四小时内登记。"),
    Pair("只有管理员可以安装软件。", "管理员不得安装软件。"),
    Pair("只有管理员可以安装软件。", "只有管理员不能安装软件。"),
    Pair("不要打开陌生人发来的附件。", "可以打开陌生人发来的附件。"),
    Pair("不要打开陌生人发来的附件。", "一定要打开陌生人发来的附件。"),
    Pair("重启生产服务器之前要先申请批准。", "重启生产服务器之前不必申请批准。"),
    Pair("重启生产服务器之前要先申请批准。", "未经批准，也可以重启生产服务器。"),
    Pair("每次最多提供三个选项。", "每次最少提供三个选项。"),
    Pair("日志保存不超过90天。", "日志保存不少于90天。"),
    Pair("电脑遗失要立即报告安全部门。", "电脑遗失不要报告安全部门。"),
    Pair("保持礼貌，不要打断来电者。", "保持礼貌，总是打断来电者。"),
    Pair("允许远程访问内部系统。", "禁止远程访问内部系统。"),
    Pair("允许远程访问内部系统。", "拒绝远程访问内部系统。"),
    Pair("客户资料必须加密存储。", "客户资料必须明文存储。"),
    Pair("始终使用公司邮箱联系客户。", "从不使用公司邮箱联系客户。"),
)  # fmt: skip
