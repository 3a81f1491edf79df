package store

import (
	"hookglass"
)

// Declared lists what files have declared in a workspace, in the order of declaration.
func (v *View) Declared(workspaceID int64) ([]hookglass.Declared, error) {
	a := &args{}
	// "+ 0" keeps indexes out in whose order lies what was declared in all other workspaces.
	query := `SELECT d.num, d.file_set, d.kind, d.endpoint, e.id, d.ref, d.name, d.made FROM declared d JOIN endpoints e ON e.num = d.endpoint + 0 AND e.deleted_at IS NULL
		WHERE d.workspace_id = ` + a.add(workspaceID) + ` AND` + v.endpointScope(a) + ` ORDER BY d.num + 0`
	return queryAll(v, func(scan func(...any) error) (d hookglass.Declared, err error) {
		err = scan(&d.Num, &d.Set, &d.Kind, &d.EndpointNum, &d.EndpointID, &d.Ref, &d.Name, &d.Made)
		return d, err
	}, query, a.all()...)
}

// SaveDeclared records that a file declared something. Of an existing record only the name changes.
func (tx *Tx) SaveDeclared(workspaceID int64, d hookglass.Declared) error {
	_, err := tx.exec(`INSERT INTO declared (workspace_id, file_set, kind, endpoint, ref, name, made, declared_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (endpoint, kind, ref) DO UPDATE SET name = excluded.name WHERE declared.name <> excluded.name`,
		workspaceID, d.Set, d.Kind, d.EndpointNum, d.Ref, d.Name, boolInt(d.Made), tx.Now.UnixMicro())
	return err
}

// ForgetDeclared deletes the record of a declaration.
func (tx *Tx) ForgetDeclared(num int64) error {
	_, err := tx.exec("DELETE FROM declared WHERE num = $1", num)
	return err
}
