package main

// ofConsole breaks the rules by which the console knows persons and edits letters.
var ofConsole = []mutant{
	{number: 245, name: "who may look may post", breaks: "a reader changes letters",
		tests: finder{"console", "^TestIdentityRightsByRoute$"},
		edits: []edit{{"console/persons.go", "r.Method == http.MethodPost && person.rights != Act", "false"}}},
	{number: 246, name: "pages are shared over rights", breaks: "a reader gets the forms of those who may act",
		tests: finder{"console", "^TestIdentityOfAPageThatIsShared$"},
		edits: []edit{{"console/live.go", "address{c.rights, r.URL.RequestURI()}", "address{Act, r.URL.RequestURI()}"}}},
	{number: 247, name: "a resume is by who began", breaks: "the audit names another person than the one who acted",
		tests: finder{"console", "^TestIdentityIsInTheAudit$"},
		edits: []edit{{"redrive/redrive.go", "cmp.Or(e.c.Actor, r.Actor)", "cmp.Or(r.Actor, e.c.Actor)"}}},
	{number: 248, name: "a mask is edited", breaks: "the stars of a mask are saved over a secret",
		tests: finder{"console", "^TestEditHasNoFormForWhatItWouldDestroy$"},
		edits: []edit{{"console/page_edit.go", "case c.Mask.Text(text) != text:", "case false:"}}},
	{number: 249, name: "two names are one", breaks: "a client adds a name next to that of the proxy, and acts under it",
		tests: finder{"internal/serve", "^TestUserHeader$"},
		edits: []edit{{"internal/serve/names.go", "len(names) == 1", "len(names) >= 1"}}},
}
