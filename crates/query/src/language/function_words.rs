//! Words whose absence would not change what a text is about.

use super::Language;

/// The function words of a language, in lower case, with a space between two.
pub(super) fn of(language: Language) -> &'static str {
    match language {
        Language::English => ENGLISH,
        Language::French => FRENCH,
        Language::German => GERMAN,
        Language::Italian => ITALIAN,
        Language::Portuguese => PORTUGUESE,
        Language::Spanish => SPANISH,
    }
}

const ENGLISH: &str = "a about above after again against all also am an and any are as at be because been before being \
    below between both but by can could did do does doing down during each few for from further had has \
    have having he her here hers him his how i if in into is it its itself just known me more most my no \
    nor not now of off on once only or other our out over own part same she should so some such than \
    that the their them then there these they this those through throughout to too under until up very \
    was we well were what when where which while who whom why will with would you your";

const FRENCH: &str = "a afin ai ainsi alors après au aucun aucune aussi autre autres aux avaient avais avait avant avec \
    avez avoir avons ayant c ce ceci cela celle celles celui ces cet cette ceux chaque chez comme \
    comment d dans de depuis des donc dont du elle elles en encore entre es est et eu eux fait furent \
    fut il ils j jamais je l la le les leur leurs lui là m ma mais me mes moi moins mon même mêmes n ne \
    ni non nos notre nous on ont ou où par parce pas pendant peu peut plus pour pourquoi puis qu quand \
    que quel quelle quelles quels qui quoi s sa sans se sera serait ses seulement si sinon soi soit son \
    sont sous suis sur t ta te tes toi ton tous tout toute toutes très tu un une vers vos votre vous y \
    étaient étais était étant été être";

const GERMAN: &str = "aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes auch \
    auf aus bei beim bin bis bist da dadurch damit dann das dass dein deine deinem deinen deiner dem den \
    denn der deren des dessen dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein \
    eine einem einen einer eines einige einigen er es etwas euch euer eure für gegen gewesen hab habe \
    haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in \
    indem ins ist ja jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kein keine \
    keinem keinen keiner können könnte man manche mehr mein meine meinem meinen meiner mich mir mit muss \
    musste nach nicht nichts noch nun nur ob oder ohne sehr sein seine seinem seinen seiner seit selbst \
    sich sie sind so solche solchem solchen solcher soll sollte sondern sonst um und uns unser unsere \
    unter viel vom von vor war waren warst warum was weg weil weiter welche welchem welchen welcher \
    welches wenn wer werde werden wie wieder will wir wird wirst wo wollen wollte während würde würden \
    zu zum zur zwar zwischen über";

const ITALIAN: &str = "a abbiamo ad agli ai al alla alle allo altre altri altro anche ancora avere aveva avevano c che chi \
    ci ciò come con contro cui d da dagli dai dal dalla dalle dallo degli dei del della delle dello \
    dentro di dopo dove dunque e ed era erano essere fa fino fra già gli ha hai hanno ho i il in io l la \
    le lei li lo loro lui m ma me mentre mi mia mie miei mio molto ne negli nei nel nella nelle nello no \
    noi non nostra nostre nostri nostro o ogni per perché più poi prima proprio qua qual quale quali \
    quando quanto quella quelle quelli quello questa queste questi questo qui s sarà se sei sempre senza \
    si sia siamo siete solo sono sopra sotto sta stata state stati stato su sua sue sugli sui sul sulla \
    sulle sullo suo suoi t te ti tra tu tua tue tuo tuoi tutta tutte tutti tutto un una uno v vi voi \
    vostra vostre vostri vostro è";

const PORTUGUESE: &str = "a ainda além ante antes ao aos apenas após aquela aquelas aquele aqueles aquilo as assim até cada \
    com como contra da das de dela delas dele deles depois desde dessa desse desta deste do dos durante \
    e ela elas ele eles em enquanto entre era eram essa essas esse esses esta estas estava estavam este \
    estes estou está estão eu foi foram fosse há isso isto já lhe lhes mais mas me mesmo meu meus minha \
    minhas muito na nas nem no nos nossa nossas nosso nossos num numa não nós o onde os ou para pela \
    pelas pelo pelos perante pode pois por porque quais qual quando que quem se seja sem sempre sendo \
    ser será seu seus sob sobre somente sua suas são só também te tem tendo ter teu teus tinha tu tua \
    tuas tudo têm um uma umas uns você vocês vos à às é";

const SPANISH: &str = "a al algo algunas algunos ante antes aquel aquella aquellas aquello aquellos así aunque aún bajo \
    bien cada como con contra cual cuales cuando de del desde donde dos durante e el ella ellas ellos en \
    entre era eran eres es esa esas ese eso esos esta estaba estaban estado estar estas este esto estos \
    estoy está están fue fueron ha había habían han hasta hay he la las le les lo los me mi mientras mis \
    mucho muchos muy más mí nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras \
    otro otros para pero poco por porque pues que quien quienes qué se sea según ser será si sido \
    siempre sin sino sobre solo son soy su sus sí también tan tanto te ti tiene tienen todo todos tu tus \
    tú un una unas uno unos vosotros vuestra vuestro y ya yo él";
