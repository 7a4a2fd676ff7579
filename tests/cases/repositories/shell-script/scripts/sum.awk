{ total += $1 }
END { print "total", total }
