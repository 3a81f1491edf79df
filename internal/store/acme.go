package store

// ACME returns the sealed data stored under a name for the installation's certificates. It answers not_found.
func (v *View) ACME(name string) (sealed []byte, err error) {
	return one(v, "entry", func(scan func(...any) error) (sealed []byte, err error) {
		err = scan(&sealed)
		return sealed, err
	}, "SELECT sealed FROM acme WHERE name = $1", &args{[]any{name}})
}

// PutACME stores sealed data under a name, replacing what was there.
func (tx *Tx) PutACME(name string, sealed []byte) error {
	_, err := tx.exec(`INSERT INTO acme (name, sealed, updated_at) VALUES ($1, $2, $3)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, updated_at = excluded.updated_at`, name, sealed, micros(tx.Now))
	return err
}

// DeleteACME deletes what is stored under a name, if anything.
func (tx *Tx) DeleteACME(name string) error {
	_, err := tx.exec("DELETE FROM acme WHERE name = $1", name)
	return err
}
