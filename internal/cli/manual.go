package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// manualCmd writes the manual page of the program for man, from the same model as --help. Packages contain it.
type manualCmd struct{}

// Run prints the page in the format of man(7).
func (*manualCmd) Run(t *Terminal, command *kong.Context) error {
	root, p := command.Model.Node, t.program
	page := &manual{}
	page.macro("TH", strings.ToUpper(p.Name), "1", "", p.Name+" "+t.Version, "User Commands")
	page.macro("nh") // Neither divided nor stretched, so that names can be searched and copied.
	page.line(".ad l")
	page.macro("SH", "NAME")
	page.line(p.Name + " \\- " + escapeManual(strings.TrimSuffix(p.Description, ".")))
	page.macro("SH", "SYNOPSIS")
	page.macro("B", p.Name)
	page.text("COMMAND [ARGUMENTS] [FLAGS]")
	page.macro("SH", "DESCRIPTION")
	page.text("Each command prints its result to standard output, as a table on a terminal and as JSON elsewhere, and " +
		"everything else to standard error. A flag takes precedence over its environment variable, which its description " +
		"names after a dollar sign. All commands have the flags --help and --version.")
	page.macro("SH", "COMMANDS")
	for _, node := range root.Leaves(true) {
		page.command(p, node)
	}
	page.macro("SH", "EXIT STATUS")
	page.entry("0", "Success.")
	page.entry("1", "The command failed.")
	page.entry("2", "A usage error: an invalid command line or setting.")
	if _, err := fmt.Fprint(t.Stdout, page.String()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// manual builds a page.
type manual struct{ strings.Builder }

func (m *manual) command(p *Program, node *kong.Node) {
	name := CommandName(node)
	m.macro("SS", p.Name+" "+name+strings.TrimPrefix(node.Summary(), node.Path()))
	m.text(node.Help)
	if node.Detail != "" {
		m.macro("PP")
		m.text(node.Detail)
	}
	for _, argument := range node.Positional {
		m.entry(argument.Summary(), flagHelp(argument))
	}
	for _, level := range node.AllFlags(true) {
		for _, flag := range level {
			if flag.Name != "help" && flag.Name != "version" {
				m.entry(flag.String(), flagHelp(flag.Value))
			}
		}
	}
	if examples := p.examples(name); len(examples) > 0 {
		m.macro("PP")
		m.line("Examples:")
		m.macro("PP")
		m.macro("nf")
		for _, example := range examples {
			m.text("  " + p.Name + " " + example)
		}
		m.macro("fi")
	}
}

// entry adds a term and its description.
func (m *manual) entry(term, description string) {
	m.macro("TP")
	m.macro("B", term)
	m.text(description)
}

// macro adds a request of man(7) with quoted arguments.
func (m *manual) macro(name string, arguments ...string) {
	words := []string{"." + name}
	for _, argument := range arguments {
		words = append(words, `"`+strings.ReplaceAll(escapeManual(argument), `"`, `\(dq`)+`"`)
	}
	m.line(strings.Join(words, " "))
}

// text adds text as it is. An empty line begins a paragraph, and an indented one is not filled.
func (m *manual) text(text string) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case line == "":
			m.macro("PP")
		case strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'"):
			m.line(`\&` + escapeManual(line))
		default:
			m.line(escapeManual(line))
		}
	}
}

func (m *manual) line(line string) { _, _ = m.WriteString(line + "\n") } // A strings.Builder never fails.

// escapeManual replaces what is special in man(7): a plain hyphen would become a typographic one, hard to copy.
func escapeManual(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}
