(: Who has what, by ward. :)
for $p in $d/patient, $f in $p/finding
return <case> { $p/ward, $f/disease, $p/name, $f/note } </case>
