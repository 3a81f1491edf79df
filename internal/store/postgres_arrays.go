package store

import (
	"encoding/binary"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"
)

// The following encode values in PostgreSQL's binary format: arguments of statements, elements of arrays, and rows of
// a COPY.

// copyHead and copyTail frame the rows of a binary COPY (its documentation, "COPY", "Binary Format").
const (
	copyHead = "PGCOPY\n\xff\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00" // no flags, no extension
	copyTail = "\xff\xff"
)

func integer(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func integers(ns []int64) []byte {
	b := appendArray(make([]byte, 0, arrayHead+12*len(ns)), pgtype.Int8OID, 0, len(ns))
	for _, n := range ns {
		b = appendInteger(b, n)
	}
	return b
}

func texts(all []string) []byte {
	b := appendArray(make([]byte, 0, arrayHead+16*len(all)), pgtype.TextOID, 0, len(all))
	for _, s := range all {
		b = appendElement(b, s)
	}
	return b
}

func byteStrings(all [][]byte) []byte {
	b := appendArray(make([]byte, 0, arrayHead+20*len(all)), pgtype.ByteaOID, 0, len(all))
	for _, v := range all {
		b = appendElement(b, v)
	}
	return b
}

const arrayHead = 20

// appendArray appends the header of a one-dimensional array (array_recv in the server's source); nulls is 1 if elements
// may be NULL.
func appendArray(b []byte, element, nulls uint32, count int) []byte {
	for _, n := range []uint32{1, nulls, element, uint32(count), 1} { // dimensions, flags, type, length, first index
		b = binary.BigEndian.AppendUint32(b, n)
	}
	return b
}

func appendInteger(b []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n))
}

func appendElement[T string | []byte](b []byte, v T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(v))), v...)
}

func appendNull(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff) }

// appendBytes appends v, or NULL for nil.
func appendBytes(b, v []byte) []byte {
	if v == nil {
		return appendNull(b)
	}
	return appendElement(b, v)
}

// inputArray encodes a column of an input as an array parameter. The driver's own arrays need a pointer per element and
// a buffer that grows by doubling from 256 bytes; this one is written in one go.
type inputArray struct {
	in     input
	column int
}

// arrayTypes lists the object ids of arrays and of their elements.
var arrayTypes = map[inputKind]struct{ array, element uint32 }{
	inputInteger: {pgtype.Int8ArrayOID, pgtype.Int8OID},
	inputText:    {pgtype.TextArrayOID, pgtype.TextOID},
	inputBytes:   {pgtype.ByteaArrayOID, pgtype.ByteaOID},
}

// writeArrays makes a connection's type map accept inputArray.
func writeArrays(m *pgtype.Map) {
	for _, oid := range arrayTypes {
		known, ok := m.TypeForOID(oid.array)
		if !ok {
			continue // all are built in
		}
		m.RegisterType(&pgtype.Type{Name: known.Name, OID: oid.array, Codec: arrayCodec{known.Codec}})
	}
}

type arrayCodec struct{ pgtype.Codec }

func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, ours := value.(inputArray); ours && format == pgtype.BinaryFormatCode {
		return arrayPlan{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type arrayPlan struct{}

// Encode appends the array to buf.
func (arrayPlan) Encode(value any, buf []byte) ([]byte, error) {
	a := value.(inputArray)
	size, nulls := arrayHead, uint32(0)
	for _, row := range a.in.rows {
		switch v := row[a.column].(type) {
		case int64, int:
			size += 12
		case string:
			size += 4 + len(v)
		case []byte:
			size += 4 + len(v)
			if v == nil {
				nulls = 1
			}
		default:
			size += 4
			nulls = 1
		}
	}
	buf = appendArray(slices.Grow(buf, size), arrayTypes[a.in.columns[a.column].kind].element, nulls, len(a.in.rows))
	for _, row := range a.in.rows {
		switch v := row[a.column].(type) {
		case int64:
			buf = appendInteger(buf, v)
		case int:
			buf = appendInteger(buf, int64(v))
		case string:
			buf = appendElement(buf, v)
		case []byte:
			buf = appendBytes(buf, v)
		default:
			buf = appendNull(buf)
		}
	}
	return buf, nil
}
