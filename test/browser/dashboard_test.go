package browser_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestDashboard opens the dashboard of a running demo.
func TestDashboard(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// Admins see the most: what a page looks like in all views, and what scripts do, depends on no role.
	for _, c := range []struct {
		name  string
		view  view
		role  roomsensor.Role
		check func(t *testing.T, p *tab, name string) []string
	}{
		{"all views", desktop, roomsensor.Admin, problemsIn(views...)},
		{"keyboard", desktop, roomsensor.Admin, walk},
		{"without scripts", plain, roomsensor.Admin, problemsIn(view{width: 390, dark: true})},
		{"desktop", desktop, roomsensor.Editor, problemsIn(desktop)},
		{"phone", phone, roomsensor.Viewer, problemsIn(phone)},
	} {
		t.Run("pages/"+c.role.String()+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			s.requirePages(t, c.view, c.role, c.check)
		})
	}
	for name, test := range map[string]func(*site, *testing.T){
		"session fixation": (*site).testSessionFixation,
		"other site":       (*site).testOtherSite,
		"open redirect":    (*site).testOpenRedirect,
		"frame":            (*site).testFrame,
		"back":             (*site).testBack,
		"markup":           (*site).testMarkup,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(s, t)
		})
	}
	for _, f := range flows {
		for _, v := range f.views {
			t.Run(f.name+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				f.test(s.newFlow(t, v), t)
			})
		}
	}
}

// requirePages looks for problems of every page that people with a role can reach.
func (s *site) requirePages(t *testing.T, v view, role roomsensor.Role, find func(*testing.T, *tab, string) []string) {
	t.Helper()
	p := newTab(t, v)
	var problems []string
	check := func(name string) { problems = append(problems, find(t, p, role.String()+"-"+name)...) }
	p.open(t, s.url+"/sign-in")
	check("sign-in")
	s.signIn(t, p, s.person(t, s.team, role))
	s.crawl(t, p, s.url+"/teams/"+s.team.String()+"/settings", check)
	p.open(t, s.url+"/missing")
	check("missing")
	require.Empty(t, problems, strings.Join(problems, "\n"))
}

// walk returns the problems of the Tab key on the page.
func walk(t *testing.T, p *tab, _ string) []string {
	t.Helper()
	return p.walk(t)
}

// problemsIn returns the method problems for some views.
func problemsIn(in ...view) func(*testing.T, *tab, string) []string {
	return func(t *testing.T, p *tab, name string) []string {
		t.Helper()
		return p.problems(t, name, in)
	}
}

// problems checks what holds for every page in each of some views, and keeps pictures of it.
func (p *tab) problems(t *testing.T, name string, in []view) (problems []string) {
	t.Helper()
	was := p.view
	for _, v := range in {
		p.resize(t, v)
		p.keep(t, name)
		for _, problem := range p.audit(t) {
			problems = append(problems, v.String()+" "+problem)
		}
	}
	p.resize(t, was)
	p.requireQuiet(t)
	return problems
}
