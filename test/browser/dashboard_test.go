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
	for _, v := range []view{desktop, {width: 1280}} {
		for _, role := range roomsensor.Roles {
			if !v.scripts && role != roomsensor.Admin {
				continue // What scripts do depends on no role.
			}
			t.Run("pages/"+role.String()+"/"+v.String(), func(t *testing.T) {
				t.Parallel()
				s.requirePages(t, v, role)
			})
		}
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

// requirePages looks at every page that people with a role can reach.
func (s *site) requirePages(t *testing.T, v view, role roomsensor.Role) {
	t.Helper()
	p := newTab(t, v)
	var problems []string
	check := func(name string) {
		problems = append(problems, p.problems(t, role.String()+"-"+name)...)
		if v == desktop && role == roomsensor.Admin {
			problems = append(problems, p.walk(t)...) // It takes longer than all others together.
		}
	}
	p.open(t, s.url+"/sign-in")
	check("sign-in")
	s.signIn(t, p, s.person(t, s.team, role))
	s.crawl(t, p, s.url+"/teams/"+s.team.String()+"/settings", check)
	p.open(t, s.url+"/missing")
	check("missing")
	require.Empty(t, problems, strings.Join(problems, "\n"))
}

// problems checks what holds for every page in each of the views, and keeps pictures of it.
func (p *tab) problems(t *testing.T, name string) (problems []string) {
	t.Helper()
	was := p.view
	for _, v := range views {
		v.scripts = was.scripts
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
