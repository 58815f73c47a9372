package browser_test

import (
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostPages is more than the dashboard has kinds of pages.
const mostPages = 120

// ids matches the parts of an address that differ between pages of one kind.
var ids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d{2}-\d{2}|[0-9A-Za-z]{16}`)

// kindOf returns what the pages of one kind have in common: the path without ids, and the names of the parameters.
func kindOf(address *url.URL) string {
	names := slices.Sorted(maps.Keys(address.Query()))
	return strings.TrimSuffix(ids.ReplaceAllString(address.Path, "ID")+"?"+strings.Join(names, "&"), "?")
}

// link is a link of a page.
type link struct {
	Address  string `json:"address"`
	Download bool   `json:"download"`
	from     string // the page
}

// crawl follows the links of the dashboard from an address, and calls visit for one page of each kind. Every link must
// lead to a page that the person may see, also those to downloads and to the documentation.
func (s *site) crawl(t *testing.T, p *tab, from string, visit func(kind string)) {
	t.Helper()
	seen, todo := map[string]bool{}, []link{{Address: from}}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		address, err := url.Parse(next.Address)
		require.NoError(t, err)
		address.Fragment = ""
		origin := address.Scheme + "://" + address.Host
		kind := origin + kindOf(address)
		if seen[kind] || origin != s.url && origin != s.api {
			continue
		}
		seen[kind] = true
		require.Less(t, len(seen), mostPages, "too many kinds of pages")
		if next.Download || origin == s.api {
			require.Equal(t, http.StatusOK, p.head(t, address.String()), "%s, which %s links", address, next.from)
			continue
		}
		response := p.open(t, address.String())
		// A link with stored text in its query can be refused, with a page that is checked like any other.
		require.Contains(t, []int64{http.StatusOK, http.StatusUnprocessableEntity}, response.Status,
			"%s, which %s links", address, next.from)
		visit(kindOf(address))
		for _, found := range evaluate[[]link](t, p, links) {
			found.from = address.String()
			todo = append(todo, found)
		}
	}
}

// links lists the links of a page.
const links = `[...document.querySelectorAll('a[href]')].map((a) => ({
	address: a.href, download: a.hasAttribute('download') || /\.(csv|parquet)$/.test(a.pathname),
}))`

// head returns the status of a request for a file, with the session of the tab.
func (p *tab) head(t *testing.T, address string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(p.within(t), http.MethodHead, address, nil)
	require.NoError(t, err)
	request.Header.Set("Cookie", sessionCookie+"="+p.cookies(t)[sessionCookie].Value)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
