package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"roomsensor/internal/process"
	"roomsensor/internal/table"
)

// Format is the flag of every command that prints a result.
type Format struct {
	Output string `default:"auto" enum:"auto,table,json,text" help:"Format of the result: table, json, or text for the values alone, separated by tabs; auto is a table on a terminal and JSON elsewhere. Choose table for a pager such as less." placeholder:"FORMAT"`
}

// Print prints the result of a command.
func (t *Terminal) Print(f Format, object any) error {
	switch {
	case f.Output == "text":
		return table.WriteText(t.Stdout, object)
	case f.Output == "table", f.Output == "auto" && t.Shows:
		return table.Write(t.Stdout, object)
	}
	return t.PrintJSON(object)
}

// PrintJSON prints the result of a command as one JSON object, with each object of its lists on a line of its own. So
// head, less and grep show items.
func (t *Terminal) PrintJSON(object any) error {
	var line bytes.Buffer
	if err := PrintLine(&line, object); err != nil {
		return err
	}
	if _, err := t.Stdout.Write(breakLists(line.Bytes())); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// PrintLine prints one object as JSON on one line.
func PrintLine(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// breakLists adds to an object in JSON a line break before each object of its lists, and before the end of such a list.
func breakLists(text []byte) []byte {
	var broken []byte
	var open []byte // The brackets around the current place.
	quoted, escaped, items := false, false, false
	for _, c := range text {
		switch {
		case quoted:
			quoted, escaped = c != '"' || escaped, c == '\\' && !escaped
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			if c == '{' && string(open) == "{[" {
				broken, items = append(broken, '\n'), true
			}
			open = append(open, c)
		case c == '}' || c == ']':
			open = open[:len(open)-1]
			if c == ']' && len(open) == 1 && items {
				broken, items = append(broken, '\n'), false
			}
		}
		broken = append(broken, c)
	}
	return broken
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// Confirmation is the flag of commands that delete data.
type Confirmation struct {
	Yes bool `help:"Do not ask for confirmation." short:"y"`
}

const (
	errDeclined    process.RefusedError = "You did not confirm. Nothing was changed."
	errUnconfirmed UsageError           = "This needs a confirmation. Check the text above, and add --yes to continue."
)

// Confirm returns nil if the operator confirms what was just described on stderr: with --yes, or by answering yes on a
// terminal.
func (t *Terminal) Confirm(ctx context.Context, c Confirmation) error {
	if c.Yes {
		return nil
	}
	if !t.Asks {
		return errUnconfirmed
	}
	yes, err := t.ask(ctx, "Type yes to continue: ")
	if err == nil && !yes {
		err = errDeclined
	}
	return err
}

// ConfirmDeletion lists what a command deletes and returns nil if the operator confirms it.
func (t *Terminal) ConfirmDeletion(ctx context.Context, c Confirmation, kind string, contents any) error {
	return t.ConfirmChange(ctx, c, fmt.Sprintf("This deletes the %s with everything in it permanently:", kind), contents)
}

// ConfirmChange prints what a command does and to what, and returns nil if the operator confirms it.
func (t *Terminal) ConfirmChange(ctx context.Context, c Confirmation, what string, contents any) error {
	_, _ = fmt.Fprint(t.Stderr, what, "\n\n")
	if err := table.Write(t.Stderr, contents); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(t.Stderr)
	return t.Confirm(ctx, c)
}

// Asker returns ask, or nil if nobody can answer.
func (t *Terminal) Asker() func(ctx context.Context, question string) (yes bool, err error) {
	if !t.Asks {
		return nil
	}
	return t.ask
}

// ask asks a question on a terminal, and reports whether the answer is yes.
func (t *Terminal) ask(ctx context.Context, question string) (yes bool, err error) {
	_, _ = fmt.Fprint(t.Stderr, question) // Without the question, the answer is not yes.
	type line struct {
		text string
		err  error
	}
	answered := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(t.Stdin).ReadString('\n')
		answered <- line{text, err}
	}()
	select {
	case answer := <-answered:
		if answer.err != nil && !errors.Is(answer.err, io.EOF) {
			return false, fmt.Errorf("reading the answer: %w", answer.err)
		}
		return strings.EqualFold(strings.TrimSpace(answer.text), "yes"), nil
	case <-ctx.Done(): // A read from a terminal does not end with ctx.
		return false, process.ErrInterrupted
	}
}
