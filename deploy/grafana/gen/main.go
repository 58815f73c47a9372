// Gen writes the dashboards for Grafana into the directory above. `go generate ./deploy/grafana/gen` runs it. It has
// types of its own for the part of Grafana's model that the dashboards use, because no module with them was available.
//
//	main.go         writes the files
//	dashboards.go   the panels and their queries
//	model.go        Grafana's model, and the layout of panels
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

//go:generate go run . ..

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run writes all dashboards into a directory.
func run(args []string, stderr io.Writer) int {
	if len(args) != 1 {
		_, _ = fmt.Fprintln(stderr, "usage: gen DIRECTORY") // There is no better place to report it.
		return 2
	}
	for name, d := range dashboards() {
		if err := write(filepath.Join(args[0], name+".json"), d); err != nil {
			_, _ = fmt.Fprintln(stderr, err) // As above.
			return 1
		}
	}
	return 0
}

func write(name string, d dashboard) error {
	text, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding a dashboard: %w", err)
	}
	if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil { //nolint:gosec // A file of the repository.
		return fmt.Errorf("writing a dashboard: %w", err)
	}
	return nil
}
