package page

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

//go:embed web
var web embed.FS

// assetsPath begins the paths of style sheets and scripts. The next element is the hash of all of them, so that
// browsers keep them permanently, and that a script imports others with relative paths.
const assetsPath = "/static/"

// assets are the style sheets, scripts and icons.
type assets struct {
	hash  string
	files map[string]*asset // by path below web/
}

type asset struct {
	body             []byte
	contentType, tag string
}

// assetTypes are the extensions of assets. The other files are templates.
var assetTypes = []string{".css", ".js", ".svg", ".ico"}

func newAssets() (*assets, error) {
	a, all := &assets{files: map[string]*asset{}}, sha256.New()
	err := fs.WalkDir(web, "web", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !slices.Contains(assetTypes, path.Ext(name)) {
			return err
		}
		body, err := web.ReadFile(name)
		if err != nil {
			return err //nolint:wrapcheck // newAssets wraps it.
		}
		_, _ = all.Write(body) // It does not fail.
		a.files[strings.TrimPrefix(name, "web/")] = &asset{
			body: body, contentType: mime.TypeByExtension(path.Ext(name)), tag: httpedge.EntityTag(body),
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the assets: %w", err)
	}
	a.hash = hex.EncodeToString(all.Sum(nil)[:8])
	return a, nil
}

// url returns the path of an asset, given as path below web/.
func (a *assets) url(name string) (string, error) {
	if a.files[name] == nil {
		return "", fmt.Errorf("no asset %q", name)
	}
	return assetsPath + a.hash + "/" + name, nil
}

// serveAsset serves an asset. During an upgrade, a page of another replica may ask for another hash: it gets the asset
// of this replica, which the browser does not keep.
func (s *Site) serveAsset(c echo.Context) error {
	file := s.assets.files[c.Param("*")]
	if file == nil {
		return roomsensor.ErrNotFound
	}
	w, r := c.Response(), c.Request()
	if httpedge.NotModified(w, r, file.tag) {
		return nil
	}
	w.Header().Set("Content-Type", file.contentType)
	if c.Param("hash") == s.assets.hash {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	return httpedge.WriteBody(w, r, http.StatusOK, file.body)
}
