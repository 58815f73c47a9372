package api

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

// mountDocs serves the docs pages without a key, and leads there from the root.
func mountDocs(e *echo.Echo, docs http.Handler, docsURL string) {
	home := func(c echo.Context) error { return c.Redirect(http.StatusFound, docsURL) }
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		e.Add(method, "/", home)
		e.Add(method, "/docs", docsPages(docs))
		e.Add(method, "/docs/*", docsPages(docs))
	}
}

// docsPages answers a page that is not there as any other unknown path.
func docsPages(docs http.Handler) echo.HandlerFunc {
	return func(c echo.Context) error {
		w := &missingPage{ResponseWriter: c.Response()}
		docs.ServeHTTP(w, c.Request())
		if w.missing {
			return roomsensor.CodeNotFound.New()
		}
		return nil
	}
}

// missingPage holds a 404 back, body and all.
type missingPage struct {
	http.ResponseWriter
	missing bool
}

func (m *missingPage) WriteHeader(status int) {
	if m.missing = status == http.StatusNotFound; !m.missing {
		m.ResponseWriter.WriteHeader(status)
	}
}

func (m *missingPage) Write(p []byte) (int, error) {
	if m.missing {
		return len(p), nil
	}
	return m.ResponseWriter.Write(p) //nolint:wrapcheck // A writer passes errors on as they are.
}
