package openapitest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// brief makes an error name the place in the body and the reason, without the schema and the value.
var brief = openapi3.SetSchemaErrorMessageCustomizer(func(err *openapi3.SchemaError) string {
	return fmt.Sprintf("/%s: %s", strings.Join(err.JSONPointer(), "/"), err.Reason)
})

// validateHeaders returns an error if a header that the document requires is missing, or has a value that its schema
// does not allow.
func validateHeaders(header http.Header, response *openapi3.Response) error {
	for name, described := range response.Headers {
		values := header.Values(name)
		if len(values) == 0 {
			if described.Value.Required {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		text := strings.Join(values, ", ")
		var value any = text
		if n, err := strconv.Atoi(text); err == nil && described.Value.Schema.Value.Type.Is(openapi3.TypeInteger) {
			value = n
		}
		if err := described.Value.Schema.Value.VisitJSON(value, brief); err != nil {
			return fmt.Errorf("the header %s is %q: %w", name, text, err)
		}
	}
	return nil
}

// validateBody returns an error if the response must not have the content type, or its schema does not allow the body.
func validateBody(contentType string, body []byte, response *openapi3.Response) error {
	if len(response.Content) == 0 {
		return nil
	}
	content := response.Content.Get(contentType)
	if content == nil {
		return fmt.Errorf("the document does not have the Content-Type %q", contentType)
	}
	if content.Schema == nil {
		return nil
	}
	var value any = string(body)
	if strings.HasPrefix(contentType, "application/json") {
		if err := json.Unmarshal(body, &value); err != nil {
			return fmt.Errorf("reading JSON: %w", err)
		}
	}
	return errors.Join(content.Schema.Value.VisitJSON(value, brief), checkStats(value))
}

// checkStats returns an error for a summary of a metric, anywhere in a value, that has a minimum, maximum or mean of no
// readings, or none of some. OpenAPI 3.0 has no keyword for such a condition.
func checkStats(value any) error {
	var inner []any
	switch value := value.(type) {
	case []any:
		inner = value
	case map[string]any:
		inner = slices.Collect(maps.Values(value))
		count, ok := value["count"].(float64)
		for _, name := range []string{"min", "max", "mean"} {
			if ok && (count == 0) != (value[name] == nil) {
				return fmt.Errorf("%s is %v where the count is %v", name, value[name], count)
			}
		}
	}
	for _, v := range inner {
		if err := checkStats(v); err != nil {
			return err
		}
	}
	return nil
}
