package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

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
	example, err := exampleOf(info, s.options.localize(writtenDocsURL+path))
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

// exampleOf prints the envelope of spec 7 for a code.
func exampleOf(info roomsensor.CodeInfo, docURL string) (string, error) {
	type inner struct {
		Type      string          `json:"type"`
		Code      roomsensor.Code `json:"code"`
		Message   string          `json:"message"`
		Param     *string         `json:"param"`
		DocURL    string          `json:"doc_url"`
		RequestID string          `json:"request_id"`
	}
	e := inner{
		Type: "invalid_request_error", Code: info.Code, Message: info.Message,
		DocURL: docURL, RequestID: "req_ujzdegxdncf32epf3dhodzdoci",
	}
	if info.Param != "" {
		e.Param = &info.Param
	}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]inner{"error": e}); err != nil {
		return "", fmt.Errorf("encoding an example: %w", err)
	}
	return body.String(), nil
}
