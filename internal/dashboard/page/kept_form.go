package page

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	// keptFormFor is the time for which a form is kept whose session had ended.
	keptFormFor = 15 * time.Minute
	// maxKeptForm is the greatest size of its cookie in bytes. Browsers take 4,096 with the name.
	maxKeptForm = 3500
)

// KeptForm is a form that a person posted after the session had ended. It is in a cookie, so that only the browser that
// posted it has it: a link cannot make somebody send a form of somebody else.
type KeptForm struct {
	Path   string // to which it was posted
	Page   string // that has the form
	Fields url.Values
}

// isSecret reports whether a field must not be kept.
func isSecret(name string) bool {
	return strings.Contains(name, "password") || strings.Contains(name, "secret")
}

func (s *Site) keptCookie(value string, age time.Duration) *http.Cookie {
	session := s.sessions.manager.Cookie
	return &http.Cookie{ //nolint:gosec // Secure is that of the session.
		Name: session.Name + "-form", Value: value, Path: "/", HttpOnly: true, Secure: session.Secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(age / time.Second),
	}
}

// isKept reports whether forms of a path are kept.
func isKept(path string) bool {
	return strings.HasPrefix(path, "/teams/") || path == "/account" || strings.HasPrefix(path, "/account/")
}

// keepForm keeps the form of a request, unless it is empty or large or has a secret. It reports whether it did.
func (s *Site) keepForm(c echo.Context) bool {
	r := c.Request()
	if r.ParseForm() != nil || len(r.PostForm) == 0 || !isKept(r.URL.EscapedPath()) {
		return false
	}
	for name := range r.PostForm {
		if isSecret(name) {
			return false
		}
	}
	kept := url.Values{"path": {r.URL.EscapedPath()}, "page": {s.pageOf(c)}, "form": {r.PostForm.Encode()}}
	value := base64.RawURLEncoding.EncodeToString([]byte(kept.Encode()))
	if len(value) > maxKeptForm {
		return false
	}
	c.SetCookie(s.keptCookie(value, keptFormFor))
	return true
}

// KeptForm returns the form that was kept, and forgets it. ok is false without one.
func (v *Visit) KeptForm() (form KeptForm, ok bool) {
	text, ok := v.keptForm()
	if !ok {
		return form, false
	}
	v.Echo.SetCookie(v.site.keptCookie("", -time.Second))
	fields, err := url.ParseQuery(text.Get("form"))
	form = KeptForm{Path: text.Get("path"), Page: text.Get("page"), Fields: fields}
	return form, err == nil && isKept(form.Path) && isKept(form.Page)
}

// HasKeptForm reports whether a form was kept.
func (v *Visit) HasKeptForm() bool {
	_, ok := v.keptForm()
	return ok
}

func (v *Visit) keptForm() (url.Values, bool) {
	cookie, err := v.Echo.Request().Cookie(v.site.keptCookie("", 0).Name)
	if err != nil {
		return nil, false
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return nil, false
	}
	values, err := url.ParseQuery(string(text))
	return values, err == nil && values.Has("form")
}
