package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// input is rows that a statement takes as one table, in one text whatever their number, so that a database which knows
// the statement need not read it again.
type input struct {
	columns []inputColumn
	rows    [][]any // int64, int, string, []byte of text in UTF-8, or nil; of the column's type each
}

type inputColumn struct {
	name string
	kind inputKind
}

type inputKind string

const (
	inputInteger inputKind = "bigint"
	inputText    inputKind = "text"
	inputBytes   inputKind = "bytea"
)

// from is the table in a FROM, under a name and with its columns, and the statement's arguments, which it has for
// itself.
func (in input) from(d dialect, name string) (table string, args []any, err error) {
	names := make([]string, len(in.columns))
	for i, c := range in.columns {
		names[i] = c.name
	}
	if d == postgres {
		arrays := make([]string, len(in.columns))
		for i, c := range in.columns {
			arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, c.kind)
			args = append(args, inputArray{in, i})
		}
		return "unnest(" + strings.Join(arrays, ", ") + ") AS " + name + " (" + strings.Join(names, ", ") + ")", args, nil
	}
	if n := len(in.rows); n > 0 && n <= fewRows {
		return in.values(names) + " AS " + name, slices.Concat(in.rows...), nil
	}
	fields := make([]string, len(in.columns))
	for i, c := range in.columns {
		fields[i] = fmt.Sprintf("json_extract(value, '$[%d]')", i)
		if c.kind == inputBytes {
			fields[i] = "cast(" + fields[i] + " AS blob)"
		}
		fields[i] += " AS " + c.name
	}
	for _, row := range in.rows {
		for i, v := range row {
			if b, ok := v.([]byte); ok && b != nil {
				row[i] = string(b)
			}
		}
	}
	text, err := json.Marshal(in.rows)
	return "(SELECT " + strings.Join(fields, ", ") + " FROM json_each($1)) AS " + name, []any{string(text)}, err
}

// fewRows is up to how many rows SQLite is given as values, in a text for each number of them. More are one JSON text:
// that is written and read once more, but texts of all numbers would not be known.
const fewRows = 8

// values is the table with the rows as unnamed arguments: SQLite finds each named one by going through all of them.
func (in input) values(names []string) string {
	columns := make([]string, len(names))
	for i, name := range names {
		columns[i] = fmt.Sprintf("column%d AS %s", i+1, name)
	}
	row := "(?" + strings.Repeat(", ?", len(names)-1) + ")"
	return "(SELECT " + strings.Join(columns, ", ") + " FROM (VALUES " + row + strings.Repeat(", "+row, len(in.rows)-1) + "))"
}

// lookup goes with the condition that a column is equal to the first one of from, which is an integer. It is for the
// reason that [dialect.picked] has.
func (in input) lookup(d dialect, column string) (condition string) {
	if d != postgres {
		return ""
	}
	return " AND " + column + " = ANY($1)"
}

// insert stores the rows in a table with columns of the same names.
func (tx *Tx) insert(table string, in input) error {
	if len(in.rows) == 0 {
		return nil
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	names := make([]string, len(in.columns))
	for i, c := range in.columns {
		names[i] = c.name
	}
	columns := strings.Join(names, ", ")
	_, err = tx.exec("INSERT INTO "+table+" ("+columns+") SELECT "+columns+" FROM "+from, args...)
	return err
}
