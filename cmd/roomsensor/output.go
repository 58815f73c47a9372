package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/table"
)

// format is the flag of every command that prints a result.
type format struct {
	Output string `default:"auto" enum:"auto,table,json,text" help:"Format of the result: table, json, or text for the values alone, separated by tabs; auto is a table on a terminal and JSON elsewhere." placeholder:"FORMAT"`
}

// print prints the result of a command.
func (t *terminal) print(f format, object any) error {
	switch {
	case f.Output == "text":
		return table.WriteText(t.stdout, object)
	case f.Output == "table", f.Output == "auto" && t.shows:
		return table.Write(t.stdout, object)
	}
	return printJSON(t.stdout, object)
}

// printJSON prints one object on one line.
func printJSON(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

// onDatabase are the flags of a command that works on the database and prints its result.
type onDatabase struct {
	config.Database
	format
}

// operate calls an operator's command on the database and prints the object that it returns.
func (t *terminal) operate(
	ctx context.Context, c onDatabase, do func(o *admin.Operator) (object any, err error),
) error {
	operator, err := admin.Open(ctx, c.Database)
	if err != nil {
		return err
	}
	defer operator.Close()
	object, err := do(operator)
	if err != nil {
		return err
	}
	return t.print(c.format, object)
}

// isTerminal reports whether a stream is a terminal.
func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// confirmation is the flag of commands that delete data.
type confirmation struct {
	Yes bool `help:"Do not ask for confirmation." short:"y"`
}

const (
	errDeclined    process.RefusedError = "You did not confirm. Nothing was changed."
	errUnconfirmed usageError           = "This needs a confirmation. Check the text above, and add --yes to continue."
)

// confirm returns nil if the operator confirms what was just described on stderr: with --yes, or by answering yes on a
// terminal.
func (t *terminal) confirm(ctx context.Context, c confirmation) error {
	if c.Yes {
		return nil
	}
	if !t.asks {
		return errUnconfirmed
	}
	yes, err := t.ask(ctx, "Type yes to continue: ")
	if err == nil && !yes {
		err = errDeclined
	}
	return err
}

// confirmDeletion lists what a command deletes and returns nil if the operator confirms it.
func (t *terminal) confirmDeletion(ctx context.Context, c confirmation, kind string, contents any) error {
	return t.confirmChange(ctx, c, fmt.Sprintf("This deletes the %s with everything in it permanently:", kind), contents)
}

// confirmChange prints what a command does and to what, and returns nil if the operator confirms it.
func (t *terminal) confirmChange(ctx context.Context, c confirmation, what string, contents any) error {
	_, _ = fmt.Fprint(t.stderr, what, "\n\n")
	if err := table.Write(t.stderr, contents); err != nil {
		return err
	}
	_, _ = fmt.Fprintln(t.stderr)
	return t.confirm(ctx, c)
}

// asker returns ask, or nil if nobody can answer.
func (t *terminal) asker() func(ctx context.Context, question string) (yes bool, err error) {
	if !t.asks {
		return nil
	}
	return t.ask
}

// ask asks a question on a terminal, and reports whether the answer is yes.
func (t *terminal) ask(ctx context.Context, question string) (yes bool, err error) {
	_, _ = fmt.Fprint(t.stderr, question) // Without the question, the answer is not yes.
	type line struct {
		text string
		err  error
	}
	answered := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(t.stdin).ReadString('\n')
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
