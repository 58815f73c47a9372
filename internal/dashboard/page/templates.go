package page

import (
	"bytes"
	"fmt"
	"html/template"
	"path"
	"strings"
	"sync"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// templates are the pages of web/pages in the layout. A page defines the templates title and content, which get the
// data of the handler, and may define head, for style sheets and scripts of its own.
//
// Each page is a pool of parsed templates. Each template of a pool has functions of its own, which belong to the visit
// that uses it: functions cannot be given to a template for one execution, and parsing again takes longer than
// rendering.
type templates map[string]*sync.Pool

// instance is a template with the visit that its functions see.
type instance struct {
	template *template.Template
	visit    *Visit
}

// view is the data of layout.html.
type view struct {
	Message    string // of the form before; shown once
	Refused    bool   // the page has a form that was not saved
	User       *accounts.User
	Team       *accounts.TeamSettings // of the page or of a shared link; nil without
	Role       roomsensor.Role
	Navigation []navEntry
	Data       any
}

func newTemplates(a *assets) (templates, error) {
	files, err := web.ReadDir("web/pages")
	if err != nil {
		return nil, fmt.Errorf("reading the templates: %w", err)
	}
	t := templates{}
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".html")
		first, err := parse(a, path.Join("web/pages", file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the page %s: %w", name, err)
		}
		t[name] = &sync.Pool{New: func() any {
			again, err := parse(a, path.Join("web/pages", file.Name()))
			if err != nil {
				panic(err) // It was parsed at the start.
			}
			return again
		}}
		t[name].Put(first)
	}
	return t, nil
}

func parse(a *assets, file string) (*instance, error) {
	i := &instance{}
	var err error
	i.template, err = template.New("layout.html").Funcs(functions(a, func() *Visit { return i.visit })).
		Option("missingkey=zero").ParseFS(web, "web/layout.html", "web/parts/*.html", file)
	if err != nil {
		return nil, err //nolint:wrapcheck // newTemplates wraps it.
	}
	return i, nil
}

// execute appends one of the templates of a page to dst.
func (t templates) execute(dst []byte, v *Visit, name, part string, data any) ([]byte, error) {
	pool := t[name]
	if pool == nil {
		return dst, fmt.Errorf("no page %q", name)
	}
	i := pool.Get().(*instance) //nolint:forcetypeassert // The pool holds nothing else.
	defer func() {
		i.visit = nil
		pool.Put(i)
	}()
	i.visit = v
	out := bytes.NewBuffer(dst)
	if err := i.template.ExecuteTemplate(out, part, data); err != nil {
		return dst, fmt.Errorf("rendering %s of the page %s: %w", part, name, err)
	}
	return out.Bytes(), nil
}

func (v *Visit) view(data any) view {
	w := view{Role: v.Role, Navigation: v.site.navigation(v), Data: data, Refused: v.refused}
	if v.User.Email != "" {
		w.User = &v.User
		w.Message = v.site.sessions.manager.PopString(v.ctx, messageKey)
	}
	if v.Team.ID != uuid.Nil {
		w.Team = &v.Team
	}
	return w
}

// Part returns one of the templates of a page.
func (v *Visit) Part(page, name string, data any) ([]byte, error) {
	return v.site.templates.execute(nil, v, page, name, data)
}
