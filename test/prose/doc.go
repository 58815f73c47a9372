// Prose checks the language of the repository against the glossary, docs/glossary.md: Markdown, Go comments, help texts
// of the command line, and log messages. `go tool task prose` runs it. It prints one line per finding, and exits with 1
// if there are any.
//
//	main.go      walks the repository and prints the findings
//	extract.go   reads the texts of a Go or Markdown file
//	check.go     applies rules.yml, and the form of log messages
//	rules.yml    the words that the glossary replaces
//
// Vale would do most of this, but it needs a C compiler to read Go comments, and linting must work without one.
package main
