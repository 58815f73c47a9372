package cli

import (
	"iter"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/table"
)

// ListFormat is the flag of every command that prints a list of the API.
type ListFormat struct {
	Output string `default:"auto" enum:"auto,table,json,csv" help:"Format of the result: table, json or csv; auto is a table on a terminal and JSON elsewhere. Choose table for a pager such as less." placeholder:"FORMAT"`
}

// PrintList prints a list of the API: in full as JSON and CSV, and as a table of the columns that row returns.
func PrintList[T, R any](t *Terminal, f ListFormat, items iter.Seq2[T, error], row func(T) R) error {
	switch {
	case f.Output == "csv":
		return table.WriteCSV(t.Stdout, items, csvenc.Guard)
	case f.Output == "json", f.Output == "auto" && !t.Shows:
		list := List[T]{Data: []T{}}
		for item, err := range items {
			if err != nil {
				return err
			}
			list.Data = append(list.Data, item)
		}
		return t.PrintJSON(list)
	}
	var list List[R]
	for item, err := range items {
		if err != nil {
			return err
		}
		list.Data = append(list.Data, row(item))
	}
	return table.Write(t.Stdout, list)
}

// List is a list in the form in which all commands print one.
type List[T any] struct {
	Data []T `json:"data"`
}
