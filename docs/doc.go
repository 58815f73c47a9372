// Package docs holds what users of the service read, and serves it under /docs: the API and upload references, the
// guides, the contract, the glossary, and one page per error code (decision 35). Everything is embedded; no page loads
// anything from another host. The guides for operators (operate/) and developers are read in the repository only.
//
//	docs.go        embedded files, addresses of a deployment, Handler
//	file.go        one served file: compression, ETag, headers; style sheets, scripts and the viewer Swagger UI
//	page.go        HTML pages: layout, navigation, references, Markdown, error pages
//	web/           templates, style sheets and scripts of the pages
//	openapi.yaml   the API; receiver.yaml: POST /uploads
//	gen/           writes the errors of both documents from the table of codes: go generate ./docs
//	serve/         serves the pages without a database: go tool task docs
package docs
