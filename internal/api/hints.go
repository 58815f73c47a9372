package api

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// This file has the messages about paths and methods that the API does not have. They say what exists instead.

// unknownPath returns the error for a path that does not exist.
func (s *server) unknownPath(path string) error {
	return roomsensor.NewError(roomsensor.CodeNotFound, "", s.pathHint(path)+
		"The API has the paths "+httpedge.Enumerate(s.paths)+".")
}

// pathHint returns the sentences about the path that was probably meant. It does not repeat a part of the path.
func (s *server) pathHint(path string) string {
	const none = "There is no such path. "
	if len(path) > maxPathLength {
		return none
	}
	whole := strings.TrimRight(path, "/")
	meant := httpedge.ClosestPath(whole, s.paths)
	versioned := httpedge.ClosestPath(version+whole, s.paths)
	switch {
	case whole == "/uploads", whole == version+"/uploads":
		return "Uploads are not sent to the API, but to the receiver, which has its own address. "
	case path != whole && meant != "":
		return "There must not be a slash at the end. " + httpedge.DidYouMean(meant)
	case meant != "":
		return none + httpedge.DidYouMean(meant)
	case versioned != "":
		return "The path does not begin with " + version + ". " + httpedge.DidYouMean(versioned)
	}
	return none
}

// maxPathLength is the length in bytes beyond which no similar path is searched for.
const maxPathLength = 256

// unknownPage returns the error for a page that the documentation does not have.
func unknownPage() error {
	return roomsensor.NewError(roomsensor.CodeNotFound, "", "The documentation has no such page. It begins at /docs.")
}

// methodNotAllowed returns 405 with the methods that a path supports (decision 34 c).
func methodNotAllowed(allowed []string) echo.HandlerFunc {
	allow := strings.Join(allowed, ", ")
	message := "This path supports " + httpedge.Enumerate(allowed) + " only."
	return func(c echo.Context) error {
		c.Response().Header().Set("Allow", allow)
		hint := ""
		if c.Request().Method == http.MethodOptions {
			hint = " A web page may call the API only if the operator has listed its origin in CORS_ORIGINS."
		}
		return roomsensor.NewError(roomsensor.CodeMethodNotAllowed, "", message+hint)
	}
}
