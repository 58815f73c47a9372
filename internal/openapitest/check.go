package openapitest

import (
	"bytes"
	"context"
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
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"roomsensor/internal/roomsensor"
)

// Answer is a response that was read whole.
type Answer struct {
	Request *http.Request
	Status  int
	Header  http.Header
	Body    []byte // as it came, compressed or not
}

// requestID is the form of decision 8.
var requestID = regexp.MustCompile(`^req_[a-z2-7]{26}$`)

// Check holds an answer to the document: its status is one of the operation's,
// headers and body are of the schemas, and an error is of its code's status
// and tells nothing of the inside. An answer to a path that the document does
// not have is not_found.
func (d *Document) Check(a *Answer) error {
	if err := d.check(a); err != nil {
		return fmt.Errorf("%s %s %d: %w", a.Request.Method, a.Request.URL.EscapedPath(), a.Status, err)
	}
	return nil
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
		return fmt.Errorf("the document does not know this status; the body is %.300s", body)
	case response == nil:
		return nil
	}
	if err := d.validate(a, response, body); err != nil {
		return err
	}
	if err := a.checkHeaders(response.Value); err != nil && d.Match(a.Request.URL) != "" {
		return err
	}
	if none := a.Request.Method == http.MethodHead || a.Status == http.StatusNotModified; none || len(body) == 0 {
		if none != (len(body) == 0) {
			return fmt.Errorf("the body has %d bytes", len(body))
		}
		return nil
	}
	if a.Status >= http.StatusBadRequest {
		return a.checkError(body)
	}
	return a.checkCSV(body)
}

// decoded is the body without its compression.
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
		return io.ReadAll(unpacked) //nolint:wrapcheck // It says what it read.
	case "zstd":
		unpacked, err := zstd.NewReader(raw)
		if err != nil {
			return nil, fmt.Errorf("reading zstd: %w", err)
		}
		defer unpacked.Close()
		return io.ReadAll(unpacked) //nolint:wrapcheck // Likewise.
	default:
		return nil, fmt.Errorf("unknown Content-Encoding %q", coding)
	}
}

// validate holds headers and body to the schemas. The validator passes over
// HEAD and 304, so every answer is shown to it as one of 200 to GET.
func (d *Document) validate(a *Answer, response *openapi3.ResponseRef, body []byte) error {
	get := a.Request.Clone(context.Background())
	get.Method = http.MethodGet
	if len(body) == 0 {
		// Whether there may be none is judged by the method and the status.
		headers := openapi3.Response{Headers: response.Value.Headers}
		response = &openapi3.ResponseRef{Value: &headers}
	}
	operation := &openapi3.Operation{Responses: openapi3.NewResponses(openapi3.WithStatus(http.StatusOK, response))}
	err := openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: get, Route: &routers.Route{Spec: d.spec, Operation: operation},
		},
		Status:  http.StatusOK,
		Header:  a.Header,
		Body:    io.NopCloser(bytes.NewReader(body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		return fmt.Errorf("validating the answer: %w; the body is %.300s", err, body)
	}
	return nil
}

// ordinary are headers that belong to HTTP: no document has to describe them.
var ordinary = []string{
	"Cache-Control", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Date", "Referrer-Policy",
	"Transfer-Encoding",
}

// checkHeaders finds headers that no client can know of.
func (a *Answer) checkHeaders(response *openapi3.Response) error {
	for name := range a.Header {
		described := func(other string) bool { return http.CanonicalHeaderKey(other) == name }
		if !slices.Contains(ordinary, name) && !slices.ContainsFunc(slices.Collect(maps.Keys(response.Headers)), described) {
			return fmt.Errorf("the document does not know the header %s", name)
		}
	}
	return nil
}

// inside is what a library, the database or the queue would say.
var inside = regexp.MustCompile(`(?i)\bsql|sqlstate|pgx|postgres|timescale|\bnats\b|jetstream|goroutine|panic|` +
	`runtime|strconv|jsontext|invalid character|unexpected|dial tcp|connection (refused|reset)|i/o timeout|127\.0\.0\.1|` +
	`localhost|\.go:\d|\.sql\b|0x[0-9a-f]{4}|deadline|context canceled|relation "|column "|duplicate key|` +
	`constraint|\bEOF\b|errno|syscall|\bnil\b|%!`)

// checkError holds an error's envelope to its code and its headers (spec 7).
func (a *Answer) checkError(body []byte) error {
	var envelope struct {
		Error struct {
			Code      roomsensor.Code `json:"code"`
			Message   string          `json:"message"`
			DocURL    string          `json:"doc_url"`
			RequestID string          `json:"request_id"`
		} `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil {
		return fmt.Errorf("reading the envelope: %w", err)
	}
	e := envelope.Error
	switch found := inside.FindString(e.Message); {
	case e.Code.Status() != a.Status && a.Status != http.StatusUnprocessableEntity:
		return fmt.Errorf("code %s is of status %d", e.Code, e.Code.Status())
	case e.RequestID != a.Header.Get("X-Request-Id"):
		return errors.New("request_id is not that of the header")
	case !strings.HasSuffix(e.DocURL, "/errors/"+string(e.Code)):
		return fmt.Errorf("doc_url is %s", e.DocURL)
	case found != "" && !strings.Contains(sent(a.Request), found):
		return fmt.Errorf("the message tells of the inside: %s", e.Message)
	}
	return nil
}

// sent is what a client may find again in a message: it wrote it itself.
func sent(r *http.Request) string {
	words := []string{r.URL.Path}
	for name, values := range r.URL.Query() {
		words = append(append(words, name), values...)
	}
	return strings.Join(words, " ")
}

// checkCSV holds an export to its header row and to the count that was sent
// before it (decisions 27 and 32).
func (a *Answer) checkCSV(body []byte) error {
	count := a.Header.Get("X-Row-Count")
	if count == "" {
		return nil
	}
	records, err := csv.NewReader(bytes.NewReader(body)).ReadAll() // Which wants fields alike in number.
	if err != nil {
		return fmt.Errorf("reading the CSV: %w", err)
	}
	if lines := strconv.Itoa(len(records) - 1); lines != count {
		return fmt.Errorf("X-Row-Count is %s, of %s lines", count, lines)
	}
	return nil
}
