package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// input is rows that a statement receives as a table. The statement's text does not depend on their number, so that the
// database can cache it.
type input struct {
	columns []inputColumn
	rows    [][]any // int64, int, string, []byte (UTF-8) or nil, according to the column's kind
}

// names lists the names of the columns.
func (in input) names() []string {
	names := make([]string, len(in.columns))
	for i, c := range in.columns {
		names[i] = c.name
	}
	return names
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

// from returns the table for a FROM clause, under a name and with its columns, and its arguments, which must be the
// statement's only ones.
func (in input) from(d dialect, name string) (table string, args []any, err error) {
	if d == postgres {
		arrays := make([]string, len(in.columns))
		for i, c := range in.columns {
			arrays[i] = fmt.Sprintf("$%d::%s[]", i+1, c.kind)
			args = append(args, inputArray{in, i})
		}
		return "unnest(" + strings.Join(arrays, ", ") + ") AS " + name + " (" + strings.Join(in.names(), ", ") + ")", args, nil
	}
	if n := len(in.rows); n > 0 && n <= fewRows {
		return in.values() + " AS " + name, slices.Concat(in.rows...), nil
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

// fewRows is up to how many rows SQLite receives them as VALUES, with one statement text per number of rows. More rows
// are one JSON text: that costs another encoding, but statements of all sizes would not stay cached.
const fewRows = 8

// values returns the table with unnamed arguments: SQLite searches named ones linearly.
func (in input) values() string {
	columns := in.names()
	for i, name := range columns {
		columns[i] = fmt.Sprintf("column%d AS %s", i+1, name)
	}
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	return "(SELECT " + strings.Join(columns, ", ") + " FROM (VALUES " + row + strings.Repeat(", "+row, len(in.rows)-1) + "))"
}

// lookup returns an additional condition on a column that equals the first column of from, an integer. It makes
// PostgreSQL use the index; see [dialect.picked].
func (in input) lookup(d dialect, column string) (condition string) {
	if d != postgres {
		return ""
	}
	return " AND " + column + " = ANY($1)"
}

// insert stores the rows in a table whose columns have the same names. rest is the end of the statement.
func (tx *Tx) insert(table string, in input, rest string) error {
	if len(in.rows) == 0 {
		return nil
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	columns := strings.Join(in.names(), ", ")
	_, err = tx.exec("INSERT INTO "+table+" ("+columns+") SELECT "+columns+" FROM "+from+rest, args...)
	return err
}

// update sets columns of a table's rows, each found by the first column of its input i, which has the name that it has
// in the table. rest is the end of the statement.
func (tx *Tx) update(table, set string, in input, rest string) error {
	if len(in.rows) == 0 {
		return nil
	}
	from, args, err := in.from(tx.dialect, "i")
	if err != nil {
		return err
	}
	key := in.columns[0].name
	_, err = tx.exec("UPDATE "+table+" SET "+set+" FROM "+from+
		" WHERE "+table+"."+key+" = i."+key+in.lookup(tx.dialect, table+"."+key)+rest, args...)
	return err
}
