package httpedge

import (
	"fmt"
	"slices"
	"strings"

	"roomsensor/internal/roomsensor"
)

// DidYouMean returns a question about the name that was probably meant, or "". The name is in quotes, because some
// names are also words, such as to.
func DidYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("Did you mean %q? ", name)
}

// otherNames are names that other services have for what the parameters of this one do.
var otherNames = map[string]string{
	"start": "from", "after": "from", "begin": "from", "until": "to", "end": "to", "before": "to",
	"period": "last", "range": "last", "window": "last", "duration": "last",
	"page": CursorParameter, "offset": CursorParameter, "skip": CursorParameter, "next_cursor": CursorParameter,
	"page_size": LimitParameter, "per_page": LimitParameter, "size": LimitParameter, "count": LimitParameter,
	"device_id": "devices", "ids": "devices", "format": "shape", "layout": "shape",
	"tz": "time_zone", "timezone": "time_zone", "zone": "time_zone",
	"bucket": "interval", "resolution": "interval", "granularity": "interval", "step": "interval",
	"tag": MetadataPrefix, "meta": MetadataPrefix, "since": "from", "fields": "metrics", "values": "metrics",
}

// elsewhere are parameters of the API, in its queries and paths. A client that sends one to an endpoint without it does
// not mean the key of a tag.
var elsewhere = []string{
	"time_zone", "excel", "shape", "columns", "include", "interval", "fill", "metrics", "external_ref", "type", "label",
	"night", "from_night", "to_night", "from", "to", "last", "since", "wait", "cursor", "limit", "min", "max_age",
	"devices", "device_id", "assignment_id", "labels",
}

// unknownParameter returns the error for a parameter that an endpoint does not have (decision 6). It lists those that
// the endpoint has.
func unknownParameter(name string, known []string) error {
	accepts := "This endpoint has no parameters."
	if len(known) > 0 {
		shown := make([]string, len(known))
		for i := range known {
			shown[i] = shownParameter(known[i])
		}
		accepts = "This endpoint accepts " + strings.Join(shown, ", ") + "."
	}
	hint := DidYouMean(closestParameter(name, known))
	if hint == "" && slices.Contains(known, MetadataPrefix) && !slices.Contains(elsewhere, name) &&
		roomsensor.CheckMetadataKey(name) == nil {
		hint = DidYouMean(Shown(MetadataPrefix+name, maxQuoted))
	}
	if name == "key" {
		hint = "Send the key in the header Authorization; only the exports of the API take it in the URL. "
	}
	return roomsensor.Invalid(roomsensor.Masked(name),
		fmt.Sprintf("Unknown parameter %s. %s%s", Quoted(name), hint, accepts))
}

// closestParameter returns the parameter that a client probably meant, or "".
func closestParameter(name string, known []string) string {
	name = strings.ToLower(name)
	if prefix, _, ok := strings.Cut(name, "."); ok { // The key of a tag may be any word.
		name = prefix + "."
	}
	found := otherNames[strings.TrimSuffix(name, ".")]
	if !slices.Contains(known, found) {
		found = Closest(name, known)
	}
	return shownParameter(found)
}

func shownParameter(name string) string {
	if name == MetadataPrefix {
		return MetadataPrefix + "<key>"
	}
	return name
}
