package seal

import (
	"os"

	"golang.org/x/sys/windows"
)

// place gives the file its name, unless another one has it (fs.ErrExist). A second name, as by a link, could not be
// taken away while another process reads the file.
func place(fresh, path string) error {
	from, err := windows.UTF16PtrFromString(fresh)
	if err != nil {
		return err
	}
	to, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	if err := windows.MoveFileEx(from, to, windows.MOVEFILE_WRITE_THROUGH); err != nil {
		return &os.LinkError{Op: "rename", Old: fresh, New: path, Err: err}
	}
	return nil
}
