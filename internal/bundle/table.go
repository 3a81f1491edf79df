package bundle

import (
	"slices"
	"strings"
	"unicode/utf8"

	"hookglass/internal/redact"
)

// Bounds of what counts as a table: the first line names the columns.
const (
	maxTableHead = 4 << 10 // bytes
	maxColumns   = 200
)

// table finds the values of a text in CSV (RFC 4180), also with semicolons or tabs, whose columns are named like fields
// of persons. A text whose lines do not all have as many cells as the first is no table.
func (m *Maker) table(s string, at spot) (found []span) {
	head, _, many := strings.Cut(s, "\n")
	separator := separatorOf(head)
	if !many || separator == 0 || len(head) > maxTableHead {
		return nil
	}
	columns, telling := columnsOf(s, separator)
	if !telling {
		return nil
	}
	person := slices.ContainsFunc(columns, personal)
	n := 0
	cells(s, separator, func(c cell) bool {
		here := spot{source: at.source, path: at.path, name: columns[n%len(columns)], person: person, shown: at.shown}
		n++
		kind := m.fieldKind(here, c.value)
		if c.row > 0 && kind != "" && c.value != "" && !m.keepKinds[kind] && !m.known.exempt[lower(c.value)] {
			m.remember(c.value, kind)
			found = append(found, span{start: c.start, end: c.end, kind: kind, put: c.fitting(m.fakes.of(kind, c.value), separator)})
		}
		return true
	})
	return found
}

// columnsOf returns the names of the columns of a table. telling reports whether they tell of what is personal, and all
// lines have as many cells as they.
func columnsOf(s string, separator byte) (columns []string, telling bool) {
	row, width := 0, 0
	whole := cells(s, separator, func(c cell) bool {
		switch {
		case c.row == 0 && len(columns) == maxColumns, c.row == 1 && !telling:
			return false
		case c.row == 0:
			columns = append(columns, c.value)
			telling = telling || kindOf(c.value) != "" || namesIP(c.value) || redact.Sensitive(c.value)
			width = len(columns)
			return true
		case c.row != row && width != len(columns):
			return false
		case c.row != row:
			row, width = c.row, 0
		}
		width++
		return width <= len(columns)
	})
	return columns, telling && whole && row > 0 && width == len(columns)
}

// separatorOf is the byte between the cells of a line, or 0 when there is none.
func separatorOf(line string) (separator byte) {
	most := 0
	for _, c := range []byte(",;\t") {
		if n := strings.Count(line, string(c)); n > most {
			separator, most = c, n
		}
	}
	return separator
}

// cell is a part of a table.
type cell struct {
	row        int
	start, end int // of its text, within the quotes if it has some
	quoted     bool
	value      string
}

// fitting makes a value one that the cell can hold as it is written.
func (c cell) fitting(value string, separator byte) string {
	return strings.Map(func(r rune) rune {
		if r == '"' || !c.quoted && (r == rune(separator) || r == '\n' || r == '\r') {
			return '-'
		}
		return r
	}, value)
}

// cells calls visit for each cell of a table, and reports whether all of them could be read and visit wanted them all.
// Lines that are empty are none.
func cells(s string, separator byte, visit func(cell) bool) bool {
	row := 0
	for i := 0; i < len(s); {
		if endsLine(s[i]) {
			i++
			continue
		}
		for {
			c, behind, whole := cellAt(s, i, separator)
			if c.row = row; !whole || !utf8.ValidString(c.value) || !visit(c) {
				return false
			}
			if i = behind; i >= len(s) || s[i] != separator {
				break
			}
			i++
		}
		if i < len(s) && !endsLine(s[i]) { // something behind a closing quote
			return false
		}
		row++
	}
	return true
}

func endsLine(b byte) bool { return b == '\n' || b == '\r' }

// cellAt reads the cell that begins at a place, and returns the place behind it.
func cellAt(s string, start int, separator byte) (c cell, behind int, whole bool) {
	if start < len(s) && s[start] == '"' {
		return quotedCell(s, start+1)
	}
	for behind = start; behind < len(s) && s[behind] != separator && !endsLine(s[behind]); behind++ {
	}
	value := strings.TrimSpace(s[start:behind])
	start += strings.Index(s[start:behind], value)
	return cell{start: start, end: start + len(value), value: value}, behind, true
}

// quotedCell is cellAt from behind the opening quote. Two quotes in the cell are one of its value.
func quotedCell(s string, start int) (c cell, behind int, whole bool) {
	for i := start; ; i += 2 {
		n := strings.IndexByte(s[i:], '"')
		if n < 0 {
			return c, 0, false
		}
		if i += n; i+1 == len(s) || s[i+1] != '"' {
			return cell{start: start, end: i, quoted: true, value: strings.ReplaceAll(s[start:i], `""`, `"`)}, i + 1, true
		}
	}
}
