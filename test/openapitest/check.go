package openapitest

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/secretscan"
)

// Answer is a response with its complete body.
type Answer struct {
	Request *http.Request
	Status  int
	Header  http.Header
	Body    []byte // as received, possibly compressed
}

// requestID matches a request id (decision 8).
var requestID = regexp.MustCompile(`^req_[a-z2-7]{26}$`)

// Check returns an error unless a response complies with the document: the operation has its status, headers and body
// match the schemas, and an error has the status of its code and shows no internals (decision 36). The response to a
// path that the document does not have must be not_found.
func (d *Document) Check(a *Answer) error {
	if err := d.check(a.withoutOrigin()); err != nil {
		return fmt.Errorf("%s %s %d: %w", a.Request.Method, a.Request.URL.EscapedPath(), a.Status, err)
	}
	return nil
}

// withoutOrigin returns the answer without Vary: Origin, which every response has with CORS_ORIGINS.
func (a *Answer) withoutOrigin() *Answer {
	vary := slices.DeleteFunc(slices.Clone(a.Header.Values("Vary")), func(name string) bool { return name == "Origin" })
	other := *a
	other.Header = a.Header.Clone()
	other.Header.Del("Vary")
	for _, name := range vary {
		other.Header.Add("Vary", name)
	}
	return &other
}

func (d *Document) check(a *Answer) error {
	if !requestID.MatchString(a.Header.Get("X-Request-Id")) {
		return fmt.Errorf("X-Request-Id is %q", a.Header.Get("X-Request-Id"))
	}
	body, err := a.decoded()
	if err != nil {
		return err
	}
	response, known := d.response(a.Request, a.Status)
	switch {
	case !known:
		return fmt.Errorf("the document does not have this status; the body is %.300s", body)
	case response == nil:
		return nil
	}
	if err := a.validate(response.Value, body); err != nil {
		return err
	}
	if err := a.checkHeaders(response.Value); err != nil && d.Match(a.Request.URL) != "" {
		return err
	}
	none := a.Request.Method == http.MethodHead || a.Status == http.StatusNotModified || a.Status == http.StatusNoContent
	if none || len(body) == 0 {
		if none != (len(body) == 0) {
			return fmt.Errorf("the body has %d bytes", len(body))
		}
		return nil
	}
	if a.Status >= http.StatusBadRequest {
		return a.checkError(body, response.Value.Content["application/json"].Examples)
	}
	if a.Header.Get("Content-Type") == parquetType {
		return a.checkParquet(body)
	}
	return a.checkCSV(body)
}

// decoded returns the uncompressed body.
func (a *Answer) decoded() ([]byte, error) {
	if len(a.Body) == 0 {
		return nil, nil
	}
	raw := bytes.NewReader(a.Body)
	switch coding := a.Header.Get("Content-Encoding"); coding {
	case "":
		return a.Body, nil
	case "gzip":
		unpacked, err := gzip.NewReader(raw)
		if err != nil {
			return nil, fmt.Errorf("reading gzip: %w", err)
		}
		return io.ReadAll(unpacked) //nolint:wrapcheck // The error names the format.
	case "zstd":
		unpacked, err := zstd.NewReader(raw)
		if err != nil {
			return nil, fmt.Errorf("reading zstd: %w", err)
		}
		defer unpacked.Close()
		return io.ReadAll(unpacked) //nolint:wrapcheck // The error names the format.
	default:
		return nil, fmt.Errorf("unknown Content-Encoding %q", coding)
	}
}

// validate checks headers and body with the schemas. A response to HEAD and 304 have the headers of GET; check compares
// the absence of a body with method and status.
func (a *Answer) validate(response *openapi3.Response, body []byte) error {
	err := validateHeaders(a.Header, response)
	if err == nil && len(body) > 0 {
		err = validateBody(a.Header.Get("Content-Type"), body, response)
	}
	if err != nil {
		return fmt.Errorf("validating the response: %w; the body is %.300s", err, body)
	}
	return nil
}

// ordinary are headers of HTTP that a document need not describe.
var ordinary = []string{
	"Access-Control-Allow-Origin", "Access-Control-Expose-Headers", "Cache-Control", "Connection", "Content-Encoding",
	"Content-Length", "Content-Security-Policy", "Content-Type", "Date", "Referrer-Policy",
	"Transfer-Encoding", "X-Content-Type-Options",
}

// checkHeaders returns an error for a header that the document does not describe.
func (a *Answer) checkHeaders(response *openapi3.Response) error {
	for name := range a.Header {
		described := func(other string) bool { return http.CanonicalHeaderKey(other) == name }
		if !slices.Contains(ordinary, name) && !slices.ContainsFunc(slices.Collect(maps.Keys(response.Headers)), described) {
			return fmt.Errorf("the document does not have the header %s", name)
		}
	}
	return nil
}

// checkError compares the envelope of an error with its code and headers (specification, part 7), and with the examples
// of the response.
func (a *Answer) checkError(body []byte, examples openapi3.Examples) error {
	var envelope struct {
		Error struct {
			Code      roomsensor.Code `json:"code"`
			Message   string          `json:"message"`
			Param     any             `json:"param"`
			DocURL    string          `json:"doc_url"`
			RequestID string          `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("reading the envelope: %w", err)
	}
	e := envelope.Error
	internals := slices.DeleteFunc(secretscan.Internals(e.Message), func(text string) bool {
		return strings.Contains(sent(a.Request), text)
	})
	switch {
	case !a.isExample(examples, e.Code, e.Param):
		return fmt.Errorf("the response has no example with the code %s and the param %v", e.Code, e.Param)
	case e.Code.Status() != a.Status && a.Status != http.StatusUnprocessableEntity:
		return fmt.Errorf("code %s is of status %d", e.Code, e.Code.Status())
	case e.RequestID != a.Header.Get("X-Request-Id"):
		return errors.New("request_id is not that of the header")
	case !strings.HasSuffix(e.DocURL, "/errors/"+string(e.Code)):
		return fmt.Errorf("doc_url is %s", e.DocURL)
	case len(internals) > 0:
		return fmt.Errorf("the message shows internals %q: %s", internals, e.Message)
	}
	return nil
}

// isExample reports whether an example of the response has the code and the param. A response with status 400 may be
// about any parameter.
func (a *Answer) isExample(examples openapi3.Examples, code roomsensor.Code, param any) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(examples)), func(example *openapi3.ExampleRef) bool {
		body, _ := example.Value.Value.(map[string]any)
		shown, _ := body["error"].(map[string]any)
		return shown["code"] == string(code) && (shown["param"] == param || a.Status == http.StatusBadRequest)
	})
}

// sent returns what the client sent, which a message may repeat.
func sent(r *http.Request) string {
	words := []string{r.URL.Path}
	for name, values := range r.URL.Query() {
		words = append(append(words, name), values...)
	}
	return strings.Join(words, " ")
}

const parquetType = "application/vnd.apache.parquet"

// checkParquet compares the number of rows of a file with X-Row-Count (A7.1).
func (a *Answer) checkParquet(body []byte) error {
	file, err := parquet.OpenFile(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return fmt.Errorf("opening the file: %w", err)
	}
	if count, rows := a.Header.Get("X-Row-Count"), strconv.FormatInt(file.NumRows(), 10); count != rows {
		return fmt.Errorf("X-Row-Count is %s, of %s rows", count, rows)
	}
	return nil
}

// checkCSV compares an export with its header row and with X-Row-Count (decisions 27 and 32).
func (a *Answer) checkCSV(body []byte) error {
	count := a.Header.Get("X-Row-Count")
	if count == "" {
		return nil
	}
	reader := csv.NewReader(bytes.NewReader(body))         // It requires the same number of fields in every row.
	if bytes.HasPrefix(body, []byte("\ufeffbucket_at;")) { // For spreadsheets with decimal commas (A19.2).
		reader.Comma = ';'
	}
	records, err := reader.ReadAll()
	if err != nil {
		return fmt.Errorf("reading the CSV: %w", err)
	}
	if lines := strconv.Itoa(len(records) - 1); lines != count {
		return fmt.Errorf("X-Row-Count is %s, of %s lines", count, lines)
	}
	return nil
}
