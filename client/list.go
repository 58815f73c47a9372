package client

import (
	"context"
	"iter"
	"net/url"
)

// page is a page of a list.
type page[T any] struct {
	Data       []T    `json:"data"`
	NextCursor string `json:"next_cursor"` // empty on the last page, where it is null
}

// list returns an iterator over the items of all pages. It yields invalid, if that is not nil, or the first error, and
// then ends. An iterator that runs again requests the first page again.
func list[T any](ctx context.Context, c *Client, path string, query url.Values, invalid error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if invalid != nil {
			yield(none, invalid)
			return
		}
		for query := query; ; {
			p, err := fetch[page[T]](ctx, c, get(path, query))
			if err != nil {
				yield(none, err)
				return
			}
			for i := range p.Data {
				if !yield(p.Data[i], nil) {
					return
				}
			}
			if p.NextCursor == "" {
				return
			}
			query = url.Values{"cursor": {p.NextCursor}} // The cursor contains the parameters of the first page.
		}
	}
}
