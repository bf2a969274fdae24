module ropewalk

go 1.23
