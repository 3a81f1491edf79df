package provider

func Diagnose(r *Request, d Detection, configs []Config) Finding { return Finding{} }
