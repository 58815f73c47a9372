package dashboard

import "strings"

// Route is a route for the tests outside of the package.
type Route struct {
	Method, Path string
	Role         string
	Public       bool
	OfTeam       bool
}

// Routes returns the table of routes.
func Routes() (all []Route) {
	for _, r := range (&pages{}).routes() {
		all = append(all, Route{r.Method, r.Path, r.Role.String(), r.Public, r.OfTeam()})
	}
	return all
}

// Fill replaces the team in a path, and gives all other parameters a value.
func (r Route) Fill(team, other string) string {
	parts := strings.Split(r.Path, "/")
	for i, part := range parts {
		switch {
		case part == ":team_id":
			parts[i] = team
		case strings.HasPrefix(part, ":"):
			parts[i] = other
		}
	}
	return strings.Join(parts, "/")
}
