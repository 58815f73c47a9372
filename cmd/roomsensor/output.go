package main

import (
	"encoding/json"
	"fmt"
	"io"
)

// printJSON writes one object and a newline.
func printJSON(w io.Writer, object any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(object); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
