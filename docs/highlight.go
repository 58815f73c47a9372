package docs

import (
	"regexp"
	"strings"
)

// token is a part of code. Its class is that of the style sheet, or empty for the color of the text.
type token struct{ class, text string }

// The classes of tokens are the names of the groups in a grammar: c for comments, s for strings, m for numbers, k for
// keywords, n for names.
const (
	lineComment = `(?P<c>(?:^|[ \t])#.*)`
	slashes     = `(?P<c>(?:^|[ \t])//.*)`
	quoted      = `"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'`
	number      = `(?P<m>\b[0-9]+(?:\.[0-9]+)?\b)`
	call        = `(?P<n>\b[A-Za-z_][A-Za-z0-9_.]*)\(`
)

// grammars describe languages well enough to color samples. Each is a list of alternatives, of which the first that
// matches applies. The general libraries limit the time of each match, so that their result depends on the load.
var grammars = map[string]*regexp.Regexp{
	"bash": grammar(lineComment, `(?P<s>`+quoted+`)`, `(?P<n>\$(?:[A-Za-z_0-9]+|\{[^}]*\})|\b[A-Za-z_]+=)`,
		words("if then else elif fi for while do done case esac in function exit set trap export echo cat"),
		`(?P<n>(?:^|[|;({] *)(?:curl|jq|roomsensor|docker|kubectl|go)\b)`, number),
	"python": grammar(lineComment, `(?P<s>"""(?s:.*?)"""|f?(?:`+quoted+`))`,
		words("import from as def return for in if elif else while break continue not and or is None True False with try "+
			"except yield lambda class"),
		call, number),
	"r": grammar(lineComment, `(?P<s>`+quoted+`)`,
		words("function if else for in while repeat break next TRUE FALSE NULL NA"), call, number),
	"javascript": grammar(slashes, "(?P<s>`[^`]*`|"+quoted+")",
		words("import from export const let function async await return for of in if else while break new throw try catch "+
			"null true false yield typeof"),
		call, number),
	"go": grammar(slashes, "(?P<s>`[^`]*`|"+quoted+")",
		words("package import func return for range if else switch case default var const type struct map defer nil true "+
			"false string int byte error"),
		call, number),
	"json": grammar(`(?P<n>"(?:\\.|[^"\\])*")\s*:`, `(?P<s>"(?:\\.|[^"\\])*")`, words("null true false"),
		`(?P<m>-?[0-9]+(?:\.[0-9]+)?)`),
	"yaml": grammar(lineComment, `(?P<n>^[ \t-]*[A-Za-z_./-]+:)`, `(?P<s>`+quoted+`)`, number),
	"http": grammar(`(?P<k>^HTTP/.*)`, `(?P<n>^[A-Za-z-]+:)`),
	"sql": grammar(`(?P<c>--.*)`, `(?P<s>'[^']*')`, words("SELECT FROM WHERE ORDER BY GROUP LIMIT INSERT INTO UPDATE SET "+
		"DELETE ALTER ROLE DATABASE GRANT CREATE DESC"), number),
}

// aliases are other names of languages in the files.
var aliases = map[string]string{"sh": "bash", "console": "bash", "js": "javascript"}

// grammar compiles alternatives, in which ^ matches at the beginning of each line.
func grammar(alternatives ...string) *regexp.Regexp {
	return regexp.MustCompile(`(?m)` + strings.Join(alternatives, "|"))
}

// words returns the alternative for keywords.
func words(list string) string {
	return `(?P<k>\b(?:` + strings.ReplaceAll(list, " ", "|") + `)\b)`
}

// tokens splits code. The texts of the tokens, one after the other, are the code.
func tokens(language, code string) (all []token) {
	if alias, ok := aliases[language]; ok {
		language = alias
	}
	pattern, ok := grammars[language]
	if !ok {
		return []token{{"", code}}
	}
	end := 0
	for _, match := range pattern.FindAllStringSubmatchIndex(code, -1) {
		for i, class := range pattern.SubexpNames() {
			if from, to := match[2*i], match[2*i+1]; class != "" && from >= 0 {
				all = append(all, token{"", code[end:from]}, token{class, code[from:to]})
				end = to
			}
		}
	}
	return append(all, token{"", code[end:]})
}
