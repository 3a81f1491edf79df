package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A bill of materials in the form of CycloneDX 1.5 (https://cyclonedx.org/docs/1.5/json/), as far as it is used.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     billMetadata `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	billMetadata struct {
		Timestamp string    `json:"timestamp"`
		Component component `json:"component"`
	}
	component struct {
		Type       string         `json:"type"`
		Ref        string         `json:"bom-ref"`
		Name       string         `json:"name"`
		Version    string         `json:"version"`
		PackageURL string         `json:"purl"`
		Licences   []billLicence  `json:"licenses,omitempty"`
		Properties []billProperty `json:"properties,omitempty"`
	}
	billLicence struct {
		Licence struct {
			ID string `json:"id"`
		} `json:"license"`
	}
	billProperty struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

func listed(ids ...string) []billLicence {
	all := make([]billLicence, len(ids))
	for i, id := range ids {
		all[i].Licence.ID = id
	}
	return all
}

// writeBill writes the bill of all platforms together.
func (r *release) writeBill(modules []*module) error {
	self := "pkg:golang/hookglass@" + r.version
	b := bill{
		Format: "CycloneDX", Spec: "1.5", Version: 1,
		Metadata: billMetadata{r.time.Format(time.RFC3339), component{
			Type: "application", Ref: self, Name: "hookglass", Version: r.version, PackageURL: self, Licences: listed("Apache-2.0"),
		}},
	}
	uses := dependency{Ref: self}
	for _, m := range modules {
		url := "pkg:golang/" + m.path + "@" + m.version
		c := component{Type: "library", Ref: url, Name: m.path, Version: m.version, PackageURL: url, Licences: listed(m.ids()...)}
		if m.sum != "" {
			c.Properties = []billProperty{{"go:sum", m.sum}}
		}
		b.Components = append(b.Components, c)
		uses.On = append(uses.On, url)
	}
	b.Dependencies = []dependency{uses}
	content, err := json.Marshal(b.Components)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(append([]byte(r.version), content...))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8 (RFC 9562): the same for the same content
	b.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
	text, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.dist, "hookglass_"+r.version+".cdx.json"), append(text, '\n'), 0o644)
}
