# ruff: noqa: E501  -- a fact a line reads better than wrapped ones
"""Facts in three wordings each, and pairs that must never become one: written for these tests.

Thresholds and word classes were chosen with `SETS` and `DIFFERENT` in view; `FRESH` and `FRESH_DIFFERENT` were
written afterwards and show what may be expected of wordings that nobody has tuned for.
"""

from __future__ import annotations

from typing import NamedTuple


class Facts(NamedTuple):
    """Five facts of one person, each in three wordings."""

    name: str
    facts: tuple[tuple[str, str, str], ...]


def _facts(text: str) -> tuple[Facts, ...]:
    found = []
    for block in text.strip().split("\n\n"):
        name, *lines = block.splitlines()
        rows = [tuple(part.strip() for part in line.split(" | ")) for line in lines]
        assert [len(row) for row in rows] == [3] * 5, name
        found.append(Facts(name.strip("# "), tuple((row[0], row[1], row[2]) for row in rows)))
    return tuple(found)


SETS = _facts("""
# travel
I prefer an aisle seat on long flights. | On long flights, an aisle seat please. | For long flights I'd rather have an aisle seat.
My frequent flyer number is KL-88213. | The frequent flyer number is KL-88213. | KL-88213 is my frequent flyer number.
I always fly out of Gatwick. | Gatwick is where I fly from. | Please book my flights from Gatwick.
Never book a hotel above 180 euros a night. | No hotel over 180 euros per night please. | Hotels above 180 euros a night are out.
I need a vegetarian meal on board. | A vegetarian meal on board, please. | On board I eat a vegetarian meal.

# working hours
My working day starts at 7 am. | I start my working day at 7:00. | The working day starts at 7 am for me.
No meetings on Friday afternoons. | Friday afternoons are free of meetings, no exceptions. | Don't schedule meetings on Friday afternoons.
My manager is Petra Lindqvist. | Petra Lindqvist is my manager. | My manager's name is Petra Lindqvist.
The sprint review happens every second Tuesday. | Every second Tuesday we have the sprint review. | Our sprint review is every second Tuesday.
I am on parental leave from 3 March. | From 3 March I'm on parental leave. | My parental leave begins on 3 March.

# shop
The refund window is 30 days. | Our refund window is 30 days. | We have a refund window of 30 days.
Invoices go to accounts@northwind.example. | Send invoices to accounts@northwind.example. | All invoices go to accounts@northwind.example.
Delivery is free above 50 euros. | Above 50 euros delivery is free. | Free delivery above 50 euros.
The warehouse in Tilburg ships until 16:00. | Until 16:00 the Tilburg warehouse ships. | The Tilburg warehouse ships until 4 pm.
Loyalty points expire after 18 months. | After 18 months loyalty points expire. | Loyalty points are gone after 18 months.

# code
Always add type hints to Python code. | Python code always gets type hints. | Add type hints in Python code.
The staging database runs on port 6543. | On port 6543 runs the staging database. | Staging database: port 6543.
We deploy on Thursdays only. | Only on Thursdays do we deploy. | Deployments happen only on Thursday.
Don't touch the legacy billing module. | The legacy billing module must not be touched. | Never touch the legacy billing module.
Error messages are written in British English. | Write error messages in British English. | British English for error messages.

# home
My daughter Ines is allergic to hazelnuts. | Ines, my daughter, is allergic to hazelnuts. | My daughter Ines has a hazelnut allergy.
We have two cats called Miso and Tofu. | Our two cats are called Miso and Tofu. | Miso and Tofu are our two cats.
I live in a flat in Ghent. | My flat is in Ghent. | I'm living in Ghent, in a flat.
My wedding anniversary is on 14 June. | On 14 June we have our wedding anniversary. | Our wedding anniversary: 14 June.
I don't drink alcohol. | Alcohol is not something I drink. | I never drink alcohol.

# answers
Keep your answers short. | Short answers, please. | Please answer briefly and keep it short.
Use bullet points in reports. | Reports should use bullet points. | I like reports with bullet points.
Give temperatures in Celsius. | Temperatures in Celsius please. | I'd like temperatures given in Celsius.
Never start an answer with a compliment. | Don't start answers with a compliment. | No compliment at the start of an answer.
Quote sources with page numbers. | Sources should be quoted with page numbers. | Please quote your sources, with page numbers.

# health
I take 20 mg of lisinopril every morning. | Every morning I take 20 mg of lisinopril. | 20 mg lisinopril each morning, that's what I take.
My physiotherapist is Dr. Amara Nwosu. | Dr. Amara Nwosu is my physiotherapist. | My physiotherapist's name is Dr. Amara Nwosu.
I run five kilometres every Sunday. | Every Sunday I run five kilometres. | On Sunday I run five kilometres.
Penicillin gives me a rash. | I get a rash from penicillin. | Penicillin: it gives me a rash.
My knee surgery was in October 2023. | In October 2023 I had knee surgery. | I had my knee surgery in October 2023.

# support desk
Escalate outages to the on-call engineer. | Outages are escalated to the on-call engineer. | Always escalate an outage to the on-call engineer.
Tickets without a serial number get closed. | We close tickets without a serial number. | A ticket without a serial number is closed.
The status page lives at status.aurora.example. | Our status page: status.aurora.example. | status.aurora.example is the status page.
Premium customers get an answer within 2 hours. | Within 2 hours premium customers get an answer. | Premium clients get a reply within two hours.
Passwords are never sent by email. | Never send passwords by email. | We don't email passwords to anybody, never send them.

# 出行
我坐飞机喜欢靠窗的座位。 | 飞机座位请选靠窗的。 | 坐飞机时，我更喜欢靠窗的座位。
酒店每晚不要超过600元。 | 每晚超过600元的酒店不要。 | 酒店价格每晚不要超过600元。
我的会员号是MU-70412。 | 会员号：MU-70412。 | MU-70412是我的会员号。
请都从虹桥机场出发。 | 以后从虹桥机场出发。 | 我一般从虹桥机场出发。
我对花生和腰果过敏。 | 花生和腰果我会过敏。 | 注意，我对花生和腰果过敏。

# 办公
周五下午不要安排会议。 | 不要在周五下午安排会议。 | 周五下午请不要安排会议。
发票寄到南京西路办公室。 | 请把发票寄到南京西路办公室。 | 南京西路办公室收发票，请寄到那里。
每周一上午九点开例会。 | 例会在每周一上午九点。 | 每周一上午9点有例会。
我的直属领导是陈立群。 | 陈立群是我的直属领导。 | 直属领导：陈立群。
报告请用要点列表。 | 报告用要点列表来写。 | 我希望报告用要点列表。

# 客服
退款期限是三十天。 | 我们的退款期限为30天。 | 退款的期限是30天。
满200元包邮。 | 订单满200元就包邮。 | 包邮的条件是满200元。
投诉一律转给值班主管。 | 投诉都转给值班主管。 | 请把投诉转给值班主管。
会员积分一年后失效。 | 一年后会员积分失效。 | 会员积分在一年后会失效。
仓库下午四点截单。 | 下午4点仓库截单。 | 我们仓库是下午四点截单。

# 回答
回答请尽量简短。 | 请回答得简短一点。 | 我喜欢简短的回答。
温度请用摄氏度。 | 用摄氏度表示温度。 | 温度以摄氏度为单位。
不要在开头夸我。 | 开头不要夸我。 | 请别在开头夸我。
代码注释请用英文写。 | 请用英文写代码注释。 | 代码注释要用英文。
引用资料要写出处。 | 请给引用的资料写出处。 | 引用资料时写明出处。
""")


class Pair(NamedTuple):
    """Two claims that are two."""

    one: str
    other: str
    why: str


DIFFERENT = (
    Pair("Use the red template for board slides.", "Use the blue template for board slides.", "colour"),
    Pair(
        "For the board slides we use the red template.", "The blue template is for the board slides.", "colour, moved"
    ),
    Pair("The refund window is 30 days.", "The refund window is 45 days.", "number"),
    Pair("The refund limit is 500 euros.", "The refund limit is 500 dollars.", "unit"),
    Pair("Anna likes green tea.", "Bob likes green tea.", "name first"),
    Pair("Send the contract to Anna Berg.", "Send the contract to Tom Berg.", "name"),
    Pair("Anna reports to Bob in the Berlin team.", "Bob reports to Anna in the Berlin team.", "who to whom"),
    Pair("Call me before noon.", "Call me after noon.", "before, after"),
    Pair("The staging database is on port 6543.", "The production database is on port 6543.", "opposites"),
    Pair("My brother lives in Oslo.", "My sister lives in Oslo.", "relation"),
    Pair("Orders above 50 euros ship free.", "Orders below 50 euros ship free.", "limit"),
    Pair("I take the train to work.", "I take the bus to work.", "one word"),
    Pair("Please write the report in German.", "Please write the report in French.", "language"),
    Pair("Turn the nightly reminders off.", "Turn the nightly reminders on.", "off"),
    Pair("We meet on Monday at ten.", "We meet on Tuesday at ten.", "weekday"),
    Pair("My daughter plays the violin in a school orchestra.", "My daughter plays football in a school team.", "half"),
    Pair("退款期限是30天。", "退款期限是45天。", "number"),
    Pair("我喜欢红色的封面。", "我喜欢蓝色的封面。", "colour"),
    Pair("报告请用英文写。", "报告请用中文写。", "language"),
    Pair("我哥哥住在杭州。", "我姐姐住在杭州。", "relation"),
    Pair("测试库在6543端口。", "线上库在6543端口。", "opposites"),
    Pair("下午三点之前打给我。", "下午三点之后打给我。", "before, after"),
    Pair("请从虹桥机场出发。", "请从浦东机场出发。", "place"),
)

FRESH = _facts("""
# garden
My tomatoes grow in the south bed behind the shed. | The tomatoes are in the south bed behind the shed. | Behind the shed, in the south bed, I grow tomatoes.
The gardener comes every other Wednesday. | Every other Wednesday the gardener comes by. | Our gardener visits every other Wednesday.
Water the roses twice a week in summer. | In summer the roses need water twice a week. | Roses: water them twice a week in summer.
I won't use chemical fertiliser. | No chemical fertiliser for me. | I never use chemical fertiliser.
The compost bin holds 300 litres. | Our compost bin has room for 300 litres. | 300 litres fit into the compost bin.

# accounting
Book travel costs to cost centre 4471. | Travel costs go to cost centre 4471. | Cost centre 4471 is the one for travel costs.
The fiscal year ends on 30 September. | Our fiscal year closes on 30 September. | 30 September is the end of the fiscal year.
Invoices over 10,000 euros need two signatures. | Two signatures are needed on invoices above 10,000 euros. | Any invoice over 10,000 euros must carry two signatures.
Our auditor is Marek Havel from Brno. | Marek Havel from Brno is our auditor. | The auditor we have is Marek Havel, from Brno.
Don't round amounts in the ledger export. | Amounts in the ledger export must not be rounded. | Never round the amounts when exporting the ledger.

# school
Our son Emil starts school in August 2027. | In August 2027 our son Emil begins school. | Emil, our son, will start school in August 2027.
Emil needs glasses for reading. | For reading, Emil needs his glasses. | Emil wears glasses when he reads.
The school bus leaves at 7:40. | At 7:40 the school bus leaves. | The bus to school leaves at 7.40 am.
Parents' evening is on the first Thursday of November. | On the first Thursday of November there is parents' evening. | The parents' evening takes place on the first Thursday of November.
Please write letters to the school in Dutch. | Letters to the school must be in Dutch. | I'd like letters to the school written in Dutch.

# 家里
我家的猫叫年糕，今年五岁。 | 我们家的猫名字叫年糕，五岁了。 | 年糕是我家的猫，今年5岁。
宽带每月最多付120元。 | 每个月的宽带费最多120元。 | 宽带费每月不超过120元。
快递请放到门口的柜子里。 | 请把快递放在门口柜子。 | 门口有柜子，快递放那里就行。
我每周三晚上去上陶艺课。 | 周三晚上我要上陶艺课。 | 每周三的晚上我有陶艺课。
我妈妈住在苏州老城区。 | 妈妈家在苏州的老城区。 | 我妈妈在苏州老城区住。

# 项目
上线窗口是每周四晚上十点。 | 每周四晚上十点上线。 | 我们的上线窗口在每周四晚上10点。
日志只保留十四天。 | 日志保留14天就行。 | 我们的日志保存十四天。
提交信息必须写工单号。 | 每次提交都要写上工单号。 | 提交信息里要带工单号。
不要直接改生产库。 | 生产库不能直接改。 | 禁止直接修改生产库。
接口文档由林晓负责。 | 负责接口文档的是林晓。 | 林晓负责写接口文档。
""")
FRESH_DIFFERENT = (
    Pair("The school bus leaves at 7:40.", "The school bus leaves at 8:40.", "time"),
    Pair("Our auditor is Marek Havel.", "Our auditor is Jana Novak.", "name"),
    Pair("The gardener comes every Wednesday.", "The gardener comes every Saturday.", "weekday"),
    Pair("My father has a boat in the harbour.", "My uncle has a boat in the harbour.", "relation"),
    Pair("Order the soup without cream.", "Order the soup with cream.", "without"),
    Pair("Book the large meeting room for the workshop.", "Book the small meeting room for the workshop.", "size"),
    Pair("Export the ledger as CSV for the auditors.", "For the auditors, export the ledger as XML.", "format, moved"),
    Pair("I moved to Lisbon for the new job.", "I left Lisbon for the new job.", "verb"),
    Pair("Emil beats Jonas at chess.", "Jonas beats Emil at chess.", "who whom"),
    Pair("The alarm code is 4471.", "The alarm code is 4417.", "digits"),
    Pair("猫叫年糕，是橘猫。", "狗叫年糕，是柴犬。", "animal"),
    Pair("日志保留十四天。", "日志保留四十天。", "number"),
    Pair("我妈妈住在苏州。", "我妈妈住在杭州。", "place"),
    Pair("接口文档由林晓负责。", "接口文档由王磊负责。", "name"),
    Pair("周三晚上我有陶艺课。", "周五晚上我有陶艺课。", "weekday"),
)

LATER = _facts("""
# bakery
The oven must be preheated to 230 degrees. | Preheat the oven to 230 degrees. | 230 degrees is what the oven is preheated to.
Our flour supplier is Molen De Hoop. | Molen De Hoop supplies our flour. | We get our flour from Molen De Hoop.
Sourdough rests for 18 hours. | The sourdough needs to rest 18 hours. | Let the sourdough rest for 18 hours.
The shop is shut on Mondays. | On Mondays the shop is shut. | The shop stays shut every Monday.
No raisins in the brioche. | Never put raisins in the brioche. | The brioche has to be made without raisins.

# travel notes
I get seasick on small boats. | Small boats make me seasick. | On small boats I get seasick.
My passport expires in May 2029. | In May 2029 my passport expires. | The passport I have expires in May 2029.
I only carry hand luggage. | Hand luggage only for me. | I travel with hand luggage only.
My sister Clara meets me in Porto. | In Porto my sister Clara meets me. | Clara, my sister, is meeting me in Porto.
Hotels should have a gym. | I want a hotel with a gym. | A gym in the hotel is a must.

# 旅行
我晕船，小船坐不了。 | 小船我坐不了，会晕船。 | 坐小船我会晕船，坐不了。
我的护照2029年5月到期。 | 我的护照到2029年5月。 | 我的护照2029年5月就到期了。
我只带手提行李。 | 行李我只带手提的。 | 我出门只带手提行李。
酒店里要有健身房。 | 酒店最好带健身房。 | 我住的酒店必须有健身房。
我姐姐在成都接我。 | 到成都是我姐姐接我。 | 在成都，姐姐会来接我。

# 厨房
烤箱先预热到二百三十度。 | 先把烤箱预热到230度。 | 烤箱预热温度是230度。
周一我们店里休息。 | 我们的店周一休息。 | 每周一店里都休息。
面粉由和顺磨坊供应。 | 和顺磨坊给我们供应面粉。 | 供应面粉的是和顺磨坊。
不要在布丁里放葡萄干。 | 布丁里不要放葡萄干。 | 布丁里别放葡萄干。
面团要醒十八个小时。 | 面团要醒18个小时。 | 面团需要醒十八小时。
""")
"""Run once when all else was fixed: 7, 6, 5 and 7 records. What that showed was then mended."""
