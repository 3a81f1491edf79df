package storetest

// Missing opens missing to the tests: a machine that has PostgreSQL cannot be without it for a test.
var Missing = missing

// Data is the directory of a cluster's files.
func (c *Cluster) Data() string { return c.data() }

// Files returns the directory of the embedded databases of this process.
func Files() (string, error) { return files() }
