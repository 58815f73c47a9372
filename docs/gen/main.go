// Command gen writes what the OpenAPI documents say of errors: the codes, an
// example of each, and the error responses. All of it comes from
// roomsensor.Codes, the one table of codes (decision 35). Run it by
// go generate ./docs.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"os"
	"strings"
	"text/template"
)

//go:embed errors.yaml.tmpl
var source string

func main() { os.Exit(run(os.Stderr)) }

// run brings the documents of the working directory up to date.
func run(stderr io.Writer) int {
	for name, errors := range documents {
		if err := update(name, errors); err != nil {
			_, _ = fmt.Fprintln(stderr, err) // There is nobody else to tell.
			return 1
		}
	}
	return 0
}

func update(name string, errors document) error {
	old, err := os.ReadFile(name) //nolint:gosec // One of the two documents.
	if err != nil {
		return fmt.Errorf("reading a document: %w", err)
	}
	text, err := fill(string(old), errors)
	if err != nil {
		return fmt.Errorf("filling %s: %w", name, err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil { //nolint:gosec // A file of the repository.
		return fmt.Errorf("writing a document: %w", err)
	}
	return nil
}

// fill replaces the three parts of a document that lie between the marks.
func fill(text string, errors document) (string, error) {
	functions := template.FuncMap{"quote": quote, "squeeze": squeeze}
	templates, err := template.New("").Funcs(functions).Parse(source)
	if err != nil {
		return "", fmt.Errorf("parsing the template: %w", err)
	}
	for _, part := range []string{"codes", "examples", "responses"} {
		var made bytes.Buffer
		if err := templates.ExecuteTemplate(&made, part, errors); err != nil {
			return "", fmt.Errorf("rendering %s: %w", part, err)
		}
		if text, err = replacePart(text, part, made.String()); err != nil {
			return "", err
		}
	}
	return text, nil
}

func replacePart(text, part, made string) (string, error) {
	begin := "    # Begin of " + part + ": made from roomsensor.Codes by go generate ./docs.\n"
	end := "    # End of " + part + ".\n"
	head, rest, ok := strings.Cut(text, begin)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", begin)
	}
	_, tail, ok := strings.Cut(rest, end)
	if !ok {
		return "", fmt.Errorf("the line %q is missing", end)
	}
	return head + begin + made + end + tail, nil
}

// quote prints a text as a YAML scalar in single quotes, where nothing but the
// quote itself needs an escape.
func quote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", "''") + "'"
}

// squeeze names the schema of a RateLimit header.
func squeeze(header string) string { return strings.ReplaceAll(header, "-", "") }
