package mcp_test

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The table of docs/mcp.md is compared with the tools, so that it cannot go stale.
func TestTheDocumentationListsTheTools(t *testing.T) {
	text, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "<!-- tools -->\n")
	table, _, found := strings.Cut(table, "\n<!-- /tools -->")
	if !found {
		t.Fatal("docs/mcp.md has no table between its marks")
	}
	storetest1(t, func(s *site) {
		tools := s.list()
		rows := strings.Split(table, "\n")[2:]
		if len(rows) != len(tools) {
			t.Errorf("%d rows, want %d", len(rows), len(tools))
		}
		for _, row := range rows {
			cells := strings.Split(strings.Trim(row, "| "), " | ")
			if len(cells) != 4 {
				t.Errorf("not a row: %s", row)
				continue
			}
			name := strings.Trim(cells[0], "`")
			d, ok := tools[name]
			if !ok || cells[1] != specified[name].scope || cells[3] != d.Title {
				t.Errorf("%s: scope %s, %q, want %s, %q", name, cells[1], cells[3], specified[name].scope, d.Title)
				continue
			}
			var documented []string
			for _, a := range strings.Split(cells[2], ", ") {
				plain := strings.Trim(a, "*")
				required, _ := d.InputSchema["required"].([]any)
				if (plain != a) != slices.Contains(required, any(plain)) {
					t.Errorf("%s: %s is marked wrongly", name, a)
				}
				documented = append(documented, plain)
			}
			for argument := range d.InputSchema["properties"].(map[string]any) {
				if !slices.Contains(documented, argument) {
					t.Errorf("%s: %s is not documented", name, argument)
				}
			}
			if len(documented) != len(d.InputSchema["properties"].(map[string]any)) {
				t.Errorf("%s: documented are %v", name, documented)
			}
		}
	})
}
