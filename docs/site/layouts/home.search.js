{{- /* What is searched: each page, and the words for which words.toml names it. */ -}}
{{- $named := dict -}}
{{- range $page, $words := hugo.Data.words -}}
  {{- with site.GetPage (printf "/%s" $page) -}}
    {{- $named = merge $named (dict .RelPermalink $words) -}}
  {{- else -}}
    {{- errorf "words.toml names %s, which is no page" $page -}}
  {{- end -}}
{{- end -}}
{{- $pages := slice -}}
{{- range site.Pages -}}
{{- if or .IsHome .IsPage -}}
{{- $headings := slice -}}
{{- range $id, $heading := .Fragments.HeadingsMap }}{{ $headings = $headings | append (dict "id" $id "title" ($heading.Title | plainify | htmlUnescape)) }}{{ end -}}
{{- $url := strings.TrimPrefix "/" .RelPermalink | default "index.html" -}}
{{- $late := findRE `/decisions/|/CHANGELOG|/trust|/ARCHITECTURE|/changelog|/architecture` .RelPermalink -}}
{{- $pages = $pages | append (dict "url" $url "title" (partial "title.html" .) "headings" $headings "text" (.Plain | htmlUnescape) "words" (index $named .RelPermalink | default slice) "late" (gt (len $late) 0)) -}}
{{- end -}}
{{- end -}}
window.nixiePages = {{ $pages | jsonify }};
