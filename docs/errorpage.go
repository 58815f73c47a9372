package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"roomsensor/internal/problem"
	"roomsensor/internal/roomsensor"
)

// errorPage is what the page of a code shows beside the code itself.
type errorPage struct {
	roomsensor.CodeInfo
	Status   string // the number and its name
	Example  string // a body
	Receiver bool   // whether only the receiver of uploads answers with it
}

// addErrors serves the index of codes and a page for each.
func (s *site) addErrors() error {
	intro, err := s.options.markdown("errors.md")
	if err != nil {
		return err
	}
	table, err := render("errors.html", roomsensor.Codes)
	if err != nil {
		return err
	}
	if err := s.addPage("/errors", page{Title: "Errors", Body: intro + table}); err != nil {
		return err
	}
	for _, info := range roomsensor.Codes {
		if err := s.addError(info); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) addError(info roomsensor.CodeInfo) error {
	path := "/errors/" + string(info.Code)
	example, err := exampleOf(info.Code, s.options.localize(writtenDocsURL))
	if err != nil {
		return err
	}
	body, err := render("error.html", errorPage{
		CodeInfo: info,
		Status:   fmt.Sprintf("%d %s", info.Status, http.StatusText(info.Status)),
		Example:  example,
		Receiver: strings.HasPrefix(string(info.Code), "ingest_"),
	})
	if err != nil {
		return err
	}
	return s.addPage(path, page{Title: string(info.Code), Body: body})
}

// exampleRequestID is the request id of every example.
const exampleRequestID = "req_ujzdegxdncf32epf3dhodzdoci"

// exampleOf prints what the service answers with a code.
func exampleOf(code roomsensor.Code, docsURL string) (string, error) {
	body, err := problem.Body(code.New(), docsURL, exampleRequestID)
	if err != nil {
		return "", err
	}
	var example bytes.Buffer
	if err := json.Indent(&example, body, "", "  "); err != nil {
		return "", fmt.Errorf("indenting an example: %w", err)
	}
	return example.String() + "\n", nil
}
