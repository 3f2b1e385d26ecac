package console_test

import "strings"

// canary is the name of an element that no page has. One that has it took a text as markup.
const canary = "nixie-canary"

// markups are texts that do harm on a page that takes them as markup, script, style or address, or
// that show another text than they are. Those that run open a dialog.
func markups() []string {
	values := []string{
		`<script>alert(1)</script>`, `"><script>alert(1)</script>`, `'><script src=//evil.example/x.js></script>`,
		`</title><script>alert(1)</script>`, `</textarea><script>alert(1)</script>`, `</style><script>alert(1)</script>`,
		`<img src=x onerror=alert(1)>`, `<svg/onload=alert(1)>`, `<svg><script>alert&#40;1)</script>`, `<body onload=alert(1)>`,
		`<iframe srcdoc="<script>parent.alert(1)</script>">`, `<object data="data:text/html,<script>alert(1)</script>">`,
		`<math><mtext><table><mglyph><style><!--</style><img title="--><img src=x onerror=alert(1)>">`,
		`<template><script>alert(1)</script></template>`, `<noscript><p title="</noscript><img src=x onerror=alert(1)>">`,
		`<style>@import url(//evil.example/x.css);*{background:url(//evil.example/y)}</style>`,
		`<link rel=stylesheet href=//evil.example/x.css>`, `<base href="//evil.example/">`,
		`<meta http-equiv=refresh content="0;url=//evil.example/">`, `<form action=//evil.example/><input name=q>`,
		`<a href="javascript:alert(1)">x</a>`, "jAvAsCrIpT:alert(1)", "java\tscript:alert(1)", "\x01javascript:alert(1)",
		`data:text/html,<script>alert(1)</script>`, `vbscript:msgbox(1)`, `//evil.example/`, `https://user:pw@evil.example/?a=b&c=d#e`,
		`" onmouseover="alert(1)`, `' onfocus='alert(1)' autofocus='`, "` onfocus=alert(1) `", `"autofocus onfocus=alert(1) x="`,
		`--><script>alert(1)</script><!--`, `]]><script>alert(1)</script>`, `<![CDATA[<script>alert(1)</script>]]>`,
		`<!--[if gte IE 4]><script>alert(1)</script><![endif]-->`, `<?xml version="1.0"?><x/>`,
		`{"a":"</script><script>alert(1)</script>\u2028\u2029"}`, "line\u2028separator\u2029paragraph",
		`<form id=form><input name=id><input name=__proto__>`, `constructor`, `__proto__`, `toString`, `hasOwnProperty`,
		`{{.}}`, `{{constructor.constructor('alert(1)')()}}`, `${alert(1)}`, `<%= 7*7 %>`, `#{7*7}`, `[[7*7]]`,
		`<b`, `<a href="`, `<` + strings.Repeat("x", 200), `&lt;script&gt;alert(1)&lt;/script&gt;`,
		`&#x3c;img src=x onerror=alert(1)&#x3e;`,
		`&amp;&bogus;&#0;&#xd800;`, `+ADw-script+AD4-alert(1)+ADw-/script+AD4-`, "\xc0\xbcscript\xc0\xbealert(1)",
		"\ufeffbom\ufeff", "nul\x00nul", "\u202egnp.exe", "\u2066isolate\u2069", "\u200fمرحبا بالعالم", "שלום",
		"zero\u200bwidth\u200djoiner",
		"ор\u0434ers", "Z" + strings.Repeat("\u0335", 60), "👩\u200d👩\u200d👧\u200d👦🏽", "\x1b]0;title\x07\x1b[2J\x1b[31mred", "over\rwritten",
		"=HYPERLINK(\"//evil.example\")", strings.Repeat("W", 10_000), strings.Repeat("𝕏 ", 2_000), "'", `"`, "`", "&", "%",
		"%00%0d%0aSet-Cookie:a=b", "../../etc/passwd", ".", "..", "?filter=x#y", "queue:\"", `queue:a" type:b`, "-", "null",
		"undefined", "NaN", "0", " ", "\t", "a\nb",
	}
	for i, v := range values {
		if len(v) < 200 {
			values[i] = v + "<" + canary + ">"
		}
	}
	return append(values, "", " ", "-")
}
