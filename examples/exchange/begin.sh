# Makes three peers and gives them tables: sh begin.sh
whence exchange init gus species.peers --peer GUS --store store > /dev/null
whence exchange init biosql --peer BioSQL --store store > /dev/null
whence exchange init ubio --peer uBio --store store > /dev/null
mkdir gus/tables biosql/tables ubio/tables
cat > gus/tables/G.csv << END
id,name,canon
828917,Oscinella frit,Drosophila melanogaster
2616529,Musca domestica,Musca domestica
END
cat > gus/tables/N.csv << END
name,common
Musca domestica,hose fly
Oscinella frit,frit fly
END
cat > biosql/tables/B.csv << END
bid,name
4472,Periplaneta americana
END
cat > ubio/tables/V.csv << END
name,common
Musca domestica,house fly
END
