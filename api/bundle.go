package api

// CreateShareBundle is the body of POST /endpoints/{endpoint_id}/share_bundles.
type CreateShareBundle struct {
	_          struct{} `additionalProperties:"false"`
	RequestIDs []string `json:"request_ids,omitempty" maxItems:"100" doc:"Which requests; or a query."`
	Query      string   `json:"query,omitempty" maxLength:"1000" doc:"The search language, in place of ids; 100 requests at most." example:"method:POST"`
	Pointers   []string `json:"pointers,omitempty" maxItems:"100" doc:"What is replaced besides what is recognised: JSON Pointers into the body, in which * stands for any name or index, header:<name>, query:<name>." example:"[\"/data/object/description\"]"`
	Keep       []string `json:"keep,omitempty" maxItems:"100" doc:"What is left as it is: places likewise, or kinds (email, phone, card, iban, ip, jwt, token, name, address, birth, identifier, binary)." example:"[\"ip\"]"`
}

// BundlePreview lists what would be replaced in a bundle, without the values and their substitutes.
type BundlePreview struct {
	Requests []BundledRequest    `json:"requests"`
	Replaced []BundleReplacement `json:"replaced"`
}

// BundledRequest is a request in a bundle.
type BundledRequest struct {
	RequestID string  `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Provider  string  `json:"provider" example:"stripe"`
	EventType *string `json:"event_type" example:"invoice.paid"`
	Signed    bool    `json:"signed" doc:"It would be signed with the published test secret." example:"true"`
	Unsigned  *string `json:"unsigned" doc:"Why not."`
	Size      int     `json:"size" doc:"Bytes of the body." example:"1024"`
}

// BundleReplacement is one place of a replacement.
type BundleReplacement struct {
	RequestID string `json:"request_id" example:"req_0dfk3v6m8t7h1s9xq2b4c5n6wz"`
	Pointer   string `json:"pointer" doc:"A JSON Pointer into the body, header:<name>, query:<name>, or the words body and path." example:"/data/object/customer_email"`
	Kind      string `json:"kind" enum:"email,phone,card,iban,ip,jwt,token,name,address,birth,identifier,secret,pointer,encoded,removed,binary" example:"email"`
	Count     int    `json:"count" example:"1"`
}
