package provider

// SignatureHeaders are those that Strip removes from a provider's deliveries; a final * stands for anything.
func SignatureHeaders(id string) []string { return table().byID[id].Strip }
