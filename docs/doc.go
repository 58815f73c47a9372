// Package docs holds what users of the service read, and serves it under /docs: a start page with a quickstart, guides
// for clients and operators, the API and upload references, the contract, the glossary, the changelog, and one page per
// error code (decision 35). Everything is embedded; no page loads anything from another host. The pages for developers
// are read in the repository only.
//
//	docs.go        embedded files, addresses of a deployment, Handler
//	file.go        one served file: compression, ETag, headers; style sheets, scripts and the viewer Swagger UI
//	nav.go         the navigation: every page but those of the error codes
//	page.go        HTML pages: layout, references, texts, error pages
//	markdown.go    Markdown to HTML: links to files become links to pages; headings and cells of tables
//	text.go        the Markdown of the pages for programs: llms.txt, links to other Markdown
//	code.go        blocks of code: samples in several languages, placeholders for the reader's values
//	highlight.go   the colors of code
//	search.go      the index for the search, which runs in the browser
//	web/           templates, style sheets and scripts of the pages
//	openapi.yaml   the API; receiver.yaml: the receiver
//	gen/           writes the errors of both documents from the table of codes: go generate ./docs
//	clientgen/     writes the types of the Go client from openapi.yaml: go generate ./docs
//	serve/         serves the pages without a database: go tool task docs
//
// test/samples runs the samples of all pages.
package docs
